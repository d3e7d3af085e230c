// What every page has, those of other distributions too.

import { connectPalette } from "./components/palette";
import { sameResults } from "./lib/links";

/** Lets the navigation lead to the experiment and the profile that this page shows. */
function connectNavigation(): void {
  for (const link of document.querySelectorAll<HTMLAnchorElement>("header.site nav a")) {
    const plain = link.href;
    // The address changes while a page is read: the link is made when it is used.
    for (const event of ["click", "auxclick", "contextmenu"]) {
      link.addEventListener(event, () => {
        link.href = sameResults(plain);
      });
    }
  }
}

connectNavigation();

connectPalette();
