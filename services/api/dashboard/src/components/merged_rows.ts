// Rows that are kept while their figures change: no flash, no lost focus, no lost scroll.

/** Makes `parent` show one row for each item, in order; a row stays the same node while its key does. */
export function mergeRows<Item, Row extends HTMLElement>(
  parent: HTMLElement,
  items: readonly Item[],
  key: (item: Item) => string,
  make: (item: Item) => Row,
  show: (row: Row, item: Item) => void,
): void {
  const known = new Map(
    Array.from(parent.children, (row) => [(row as Row).dataset.key, row as Row]),
  );
  items.forEach((item, index) => {
    const name = key(item);
    const row = known.get(name) ?? make(item);
    row.dataset.key = name;
    known.delete(name);
    show(row, item);
    const there = parent.children[index];
    if (there !== row) parent.insertBefore(row, there ?? null);
  });
  for (const row of known.values()) row.remove();
}
