/**
 * Scrolls through any number of rows of equal height. Browsers limit the height of an element (Firefox at 17.8 million
 * pixels), so beyond MOST_PIXELS the rows lie in a shorter space that moves along: small movements go row by row, and
 * large ones to the same share of all rows. SlickGrid does it in this way.
 */
const MOST_PIXELS = 8_000_000;
/** How far one scrolls until the space moves along. Pixels. */
const PAGE = MOST_PIXELS / 100;

/** `place`: the element that scrolls. `moved`: other rows are in sight. `signal`: aborts when this is given up. */
export function createScroller(
  place: HTMLElement,
  rowHeight: number,
  moved: () => void,
  signal: AbortSignal,
) {
  let rows = 0;
  /** How far the space has moved along. Pixels. */
  let offset = 0;
  let top = 0;

  /** The height of all rows, and of the space that they lie in. Pixels. */
  const all = () => rows * rowHeight;
  const space = () => Math.min(all(), MOST_PIXELS);

  /** The height in which rows are in sight, below the head of the table. Pixels. */
  const height = (): number =>
    Math.max(rowHeight, place.clientHeight - (place.firstElementChild?.clientHeight ?? 0));

  const offsetAt = (wanted: number): number => {
    const last = Math.floor(all() / PAGE) - 1;
    const page = Math.min(last, Math.floor(wanted / PAGE));
    return all() === space() ? 0 : Math.round((page / last) * (all() - space()));
  };

  const goTo = (wanted: number): void => {
    const to = Math.max(0, Math.min(wanted, all() - height()));
    offset = offsetAt(to);
    const inSpace = to - offset;
    if (Math.abs(inSpace - place.scrollTop) >= 1) place.scrollTop = inSpace;
    // The browser rounds, and stops at the ends.
    top = place.scrollTop;
  };

  const scrolled = (): void => {
    const now = place.scrollTop;
    const way = Math.abs(now - top);
    if (way === 0) return;
    if (way < height() || all() === space()) goTo(now + offset);
    else {
      const share = now / Math.max(1, space() - height());
      offset = offsetAt(share * (all() - height()));
      top = now;
    }
    moved();
  };
  place.addEventListener('scroll', scrolled, { passive: true, signal });

  /** Makes a row the first in sight. The space must have its height already. */
  const scrollTo = (row: number): void => {
    goTo(row * rowHeight);
    moved();
  };

  return {
    scrollTo,
    space,

    /** The number of the first row in sight, and of the one behind the last. */
    inSight(): readonly [first: number, end: number] {
      const first = Math.floor((top + offset) / rowHeight);
      return [first, Math.min(rows, first + Math.ceil(height() / rowHeight) + 1)];
    },

    /** The place of a row inside the space. Pixels. */
    topOf: (row: number) => row * rowHeight - offset,

    setRows(wanted: number): void {
      if (wanted === rows) return;
      const before = top + offset;
      rows = wanted;
      offset = offsetAt(before);
    },

    /** Scrolls as little as possible until a row is in sight. */
    reveal(row: number): void {
      const [wanted, now] = [row * rowHeight, top + offset];
      if (wanted < now) scrollTo(row);
      else if (wanted + rowHeight > now + height()) scrollTo((wanted + rowHeight - height()) / rowHeight);
    },
  };
}
