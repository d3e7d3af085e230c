"""The style of a report, within the page: light and dark, on a phone, on a desk and on paper."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --ink: #1b1d21; --quiet: #5b6169; --line: #d9dce1;
  --paper: #fff; --mark: #1f5fa8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e7e9ec; --quiet: #a3a9b2; --line: #3a3f47; --paper: #15171a; --mark: #7db4f0; } }
body { margin: 0 auto; padding: 2rem 1rem 4rem; max-width: 62rem; color: var(--ink);
  background: var(--paper); font: 1rem/1.5 system-ui, sans-serif; }
h1 { margin: 0 0 .25rem; font-size: 1.75rem; line-height: 1.2; overflow-wrap: anywhere; }
h2 { margin: 2.25rem 0 .5rem; font-size: 1.1rem; }
.lead, .aid, caption { color: var(--quiet); }
.aid { margin: .35rem 0; font-size: .875rem; }
.caution { border-left: 3px solid var(--mark); padding-left: .75rem; }
.notes { white-space: pre-wrap; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
.wide:focus-visible { outline: 2px solid var(--mark); }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .25rem; }
th, td { padding: .3rem .75rem .3rem 0; border-bottom: 1px solid var(--line); font-weight: 400; }
thead th { color: var(--quiet); vertical-align: bottom; }
.word { text-align: left; }
.figure { text-align: right; white-space: nowrap; }
tbody th { min-width: 8rem; max-width: 18rem; overflow-wrap: break-word; }
svg line { stroke-width: 1; stroke: var(--line); }
svg .interval { stroke: var(--mark); stroke-width: 2; }
svg circle { fill: var(--mark); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.25rem; margin: 0;
  font-size: .875rem; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
pre { padding: .75rem; border: 1px solid var(--line); font-size: .8rem; white-space: pre-wrap;
  overflow-wrap: anywhere; }
@media print { body { max-width: none; padding: 0; } h2 { break-after: avoid; }
  tr { break-inside: avoid; } .wide { overflow: visible; } }
"""
