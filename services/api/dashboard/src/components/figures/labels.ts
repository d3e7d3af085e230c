// Names beside marks, placed so that none covers another, nor a mark.

export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export interface Named {
  x: number;
  y: number;
  text: string;
  isBold: boolean;
}

export interface Placed {
  /** The middle of the text's left end. */
  x: number;
  y: number;
  width: number;
  /** Whether it stands so far from its mark that a line has to join them. */
  isFar: boolean;
}

const HEIGHT = 15;
const GAP = 9;
/** How far from its mark a name may stand, in pixels; the nearest free place wins. */
const RINGS = [GAP, 18, 28, 40, 54, 70, 90];
/** In a narrow figure long lines cross too much: a name without room stays out. */
const NARROW = 600;
const NARROW_RINGS = 4;
/** Of more marks than these, plain names stand right beside theirs or stay out. */
const MANY = 60;
const DIRECTIONS = Array.from({ length: 16 }, (_, at) => (at * Math.PI) / 8);
/** A name across a whisker reads worse than one a ring further out. */
const CROSSING = 1.5;

let canvas: CanvasRenderingContext2D | null = null;

export function textWidth(text: string, size: number, weight = 400): number {
  canvas ??= document.createElement("canvas").getContext("2d");
  if (!canvas) return text.length * size * 0.6;
  canvas.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  return canvas.measureText(text).width;
}

function overlap(one: Box, other: Box): boolean {
  return (
    one.left < other.right &&
    other.left < one.right &&
    one.top < other.bottom &&
    other.top < one.bottom
  );
}

export function around(x: number, y: number, reach: number): Box {
  return { left: x - reach, right: x + reach, top: y - reach, bottom: y + reach };
}

/** The place of a text of `width` in one direction from its mark. */
function placed(mark: Named, width: number, direction: number, ring: number): Box {
  const [across, down] = [Math.cos(direction), Math.sin(direction)];
  const x = mark.x + across * ring;
  const y = mark.y + down * ring;
  const left = Math.abs(across) < 0.2 ? x - width / 2 : across > 0 ? x : x - width;
  return { left, right: left + width, top: y - HEIGHT / 2, bottom: y + HEIGHT / 2 };
}

/** Whether the line from the mark to its name runs through another name or mark. */
function runsThrough(mark: Named, box: Box, others: readonly Box[]): boolean {
  const end = {
    x: Math.min(Math.max(mark.x, box.left), box.right),
    y: (box.top + box.bottom) / 2,
  };
  const steps = [0.2, 0.4, 0.6, 0.8].map((share) =>
    around(mark.x + (end.x - mark.x) * share, mark.y + (end.y - mark.y) * share, 1),
  );
  return steps.some((step) => others.some((other) => overlap(step, other)));
}

/**
 * Places for the names of `marks`, the most important first; null where there is no room.
 *
 * `hard` may not be covered, `soft` should not.
 */
export function placeLabels(
  marks: readonly Named[],
  hard: readonly Box[],
  soft: readonly Box[],
  area: Box,
  size: number,
): (Placed | null)[] {
  const taken: Box[] = [];
  const rings = area.right - area.left < NARROW ? NARROW_RINGS : RINGS.length;
  return marks.map((mark) => {
    const width = textWidth(mark.text, size, mark.isBold ? 600 : 400) + 4;
    const most = marks.length > MANY && !mark.isBold ? 1 : rings;
    const best = bestPlace(mark, width, [...hard, ...taken], soft, area, most);
    if (!best) return null;
    taken.push(best.box);
    const { left, top, bottom } = best.box;
    return { x: left + 2, y: (top + bottom) / 2, width: width - 4, isFar: best.ring > 0 };
  });
}

function bestPlace(
  mark: Named,
  width: number,
  hard: readonly Box[],
  soft: readonly Box[],
  area: Box,
  most: number,
): { box: Box; ring: number } | null {
  let best: { box: Box; ring: number; price: number } | null = null;
  const own = around(mark.x, mark.y, 1);
  const others = hard.filter((box) => !overlap(box, own));
  for (const [ring, reach] of RINGS.slice(0, most).entries()) {
    // Nothing further out can be better.
    if (best && best.price <= ring) break;
    for (const direction of DIRECTIONS) {
      const box = placed(mark, width, direction, reach);
      const isInside =
        box.left >= area.left &&
        box.right <= area.right &&
        box.top >= area.top &&
        box.bottom <= area.bottom;
      if (!isInside || hard.some((other) => overlap(box, other))) continue;
      if (ring > 0 && runsThrough(mark, box, others)) continue;
      const price = ring + CROSSING * soft.filter((other) => overlap(box, other)).length;
      if (!best || price < best.price) best = { box, ring, price };
    }
  }
  return best;
}
