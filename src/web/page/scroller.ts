/**
 * Scrolls through any number of rows of equal height. Browsers limit the height of an element (Firefox at 17.8 million
 * pixels), so beyond MOST_PIXELS the rows lie in a shorter space that moves along: small movements go row by row, and
 * large ones to the same share of all rows. SlickGrid does it in this way.
 */
const MOST_PIXELS = 8_000_000;
/** How far one scrolls until the space moves along. Pixels. */
const PAGE = MOST_PIXELS / 100;

export class Scroller {
  readonly #place: HTMLElement;
  readonly #rowHeight: number;
  readonly #moved: () => void;
  #rows = 0;
  /** How far the space has moved along. Pixels. */
  #offset = 0;
  #top = 0;

  /** `place`: the element that scrolls. `moved`: other rows are in sight. `signal`: aborts when this is given up. */
  constructor(place: HTMLElement, rowHeight: number, moved: () => void, signal: AbortSignal) {
    this.#place = place;
    this.#rowHeight = rowHeight;
    this.#moved = moved;
    place.addEventListener('scroll', () => this.#scrolled(), { passive: true, signal });
  }

  /** The height of the space that the rows lie in. Pixels. */
  get space(): number {
    return Math.min(this.#all, MOST_PIXELS);
  }

  /** The number of the first row in sight, and of the one behind the last. */
  inSight(): readonly [first: number, end: number] {
    const first = Math.floor((this.#top + this.#offset) / this.#rowHeight);
    return [first, Math.min(this.#rows, first + Math.ceil(this.#height / this.#rowHeight) + 1)];
  }

  /** The place of a row inside the space. Pixels. */
  topOf(row: number): number {
    return row * this.#rowHeight - this.#offset;
  }

  setRows(rows: number): void {
    if (rows === this.#rows) return;
    const before = this.#top + this.#offset;
    this.#rows = rows;
    this.#offset = this.#offsetAt(before);
  }

  /** Makes a row the first in sight. The space must have its height already. */
  scrollTo(row: number): void {
    this.#goTo(row * this.#rowHeight);
    this.#moved();
  }

  /** Scrolls as little as possible until a row is in sight. */
  reveal(row: number): void {
    const rowHeight = this.#rowHeight;
    const wanted = row * rowHeight;
    const now = this.#top + this.#offset;
    if (wanted < now) this.scrollTo(row);
    else if (wanted + rowHeight > now + this.#height)
      this.scrollTo((wanted + rowHeight - this.#height) / rowHeight);
  }

  /** The height of all rows. Pixels. */
  get #all(): number {
    return this.#rows * this.#rowHeight;
  }

  /** The height in which rows are in sight, below the head of the table. Pixels. */
  get #height(): number {
    const head = this.#place.firstElementChild?.clientHeight ?? 0;
    return Math.max(this.#rowHeight, this.#place.clientHeight - head);
  }

  #offsetAt(wanted: number): number {
    const last = Math.floor(this.#all / PAGE) - 1;
    const page = Math.min(last, Math.floor(wanted / PAGE));
    return this.#all === this.space ? 0 : Math.round((page / last) * (this.#all - this.space));
  }

  #goTo(wanted: number): void {
    const to = Math.max(0, Math.min(wanted, this.#all - this.#height));
    this.#offset = this.#offsetAt(to);
    const inSpace = to - this.#offset;
    if (Math.abs(inSpace - this.#place.scrollTop) >= 1) this.#place.scrollTop = inSpace;
    // The browser rounds, and stops at the ends.
    this.#top = this.#place.scrollTop;
  }

  #scrolled(): void {
    const now = this.#place.scrollTop;
    const way = Math.abs(now - this.#top);
    if (way === 0) return;
    if (way < this.#height || this.#all === this.space) this.#goTo(now + this.#offset);
    else {
      const share = now / Math.max(1, this.space - this.#height);
      this.#offset = this.#offsetAt(share * (this.#all - this.#height));
      this.#top = now;
    }
    this.#moved();
  }
}
