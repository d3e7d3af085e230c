// What every page has, those of other distributions too.

import { connectPalette } from "./components/palette";

connectPalette();
