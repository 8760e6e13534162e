/**
 * Scrolls through any number of rows of equal height. Browsers limit the height of an element (Firefox at 17.8 million
 * pixels), so beyond MOST_PIXELS the rows lie in a shorter space that moves along: small movements go row by row, and
 * large ones to the same share of all rows. SlickGrid does it in this way.
 */
const MOST_PIXELS = 8_000_000;
const PAGES = 100;

export class Scroller {
  readonly #place: HTMLElement;
  readonly #rowHeight: number;
  readonly #moved: () => void;
  #rows = 0;
  /** The height of all rows, and of the space that they lie in. Pixels. */
  #all = 0;
  #space = 0;
  #pages = 1;
  #pageHeight = 1;
  #jump = 0;
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

  /** The height of the space that rows lie in. Pixels. */
  get space(): number {
    return this.#space;
  }

  /** The number of the first row in sight, and of the one behind the last. */
  get inSight(): readonly [first: number, end: number] {
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
    this.#all = rows * this.#rowHeight;
    this.#space = Math.min(this.#all, MOST_PIXELS);
    this.#pageHeight = this.#space / PAGES || 1;
    this.#pages = this.#all > MOST_PIXELS ? Math.floor(this.#all / this.#pageHeight) : 1;
    this.#jump = this.#pages > 1 ? (this.#all - this.#space) / (this.#pages - 1) : 0;
    this.#offset = this.#offsetAt(before);
  }

  /** Makes a row the first in sight. The space must have its height already. */
  scrollTo(row: number): void {
    this.#goTo(row * this.#rowHeight);
    this.#moved();
  }

  /** Scrolls as little as possible until a row is in sight. */
  reveal(row: number): void {
    const [top, now] = [row * this.#rowHeight, this.#top + this.#offset];
    if (top < now) this.scrollTo(row);
    else if (top + this.#rowHeight > now + this.#height)
      this.scrollTo((top + this.#rowHeight - this.#height) / this.#rowHeight);
  }

  /** The height in which rows are in sight, below the head of the table. Pixels. */
  get #height(): number {
    const head = this.#place.firstElementChild?.clientHeight ?? 0;
    return Math.max(this.#rowHeight, this.#place.clientHeight - head);
  }

  #offsetAt(top: number): number {
    if (this.#pages === 1) return 0;
    return Math.round(Math.min(this.#pages - 1, Math.floor(top / this.#pageHeight)) * this.#jump);
  }

  #scrolled(): void {
    const top = this.#place.scrollTop;
    const moved = Math.abs(top - this.#top);
    if (moved === 0) return;
    if (moved < this.#height || this.#pages === 1) this.#goTo(top + this.#offset);
    else {
      const share = top / Math.max(1, this.#space - this.#height);
      this.#offset = this.#offsetAt(share * (this.#all - this.#height));
      this.#top = top;
    }
    this.#moved();
  }

  #goTo(wanted: number): void {
    const top = Math.max(0, Math.min(wanted, this.#all - this.#height));
    this.#offset = this.#offsetAt(top);
    const inSpace = top - this.#offset;
    if (Math.abs(inSpace - this.#place.scrollTop) >= 1) this.#place.scrollTop = inSpace;
    // The browser rounds, and stops at the ends.
    this.#top = this.#place.scrollTop;
  }
}
