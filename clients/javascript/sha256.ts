/** SHA-256 (FIPS 180-4) over bytes that come in pieces, which the one of browsers cannot. */
export class Sha256 {
  readonly #state = FIRST.slice();
  readonly #words = new Int32Array(64);
  readonly #block = new Uint8Array(BLOCK);
  readonly #view = new DataView(this.#block.buffer);
  #length = 0;

  update(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const filled = this.#length % BLOCK;
      const piece = bytes.subarray(at, at + BLOCK - filled);
      this.#block.set(piece, filled);
      this.#length += piece.length;
      at += piece.length;
      if (this.#length % BLOCK === 0) this.#mix();
    }
  }

  /** In hexadecimal digits. Called once, at the end. */
  digest(): string {
    const bits = BigInt(this.#length) * 8n;
    const padding = new Uint8Array(((2 * BLOCK - 9 - (this.#length % BLOCK)) % BLOCK) + 9);
    padding[0] = 0x80;
    new DataView(padding.buffer).setBigUint64(padding.length - 8, bits);
    this.update(padding);
    return [...this.#state].map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
  }

  #mix(): void {
    const w = this.#words;
    const view = this.#view;
    for (let i = 0; i < 16; i++) w[i] = view.getInt32(4 * i);
    for (let i = 16; i < 64; i++) {
      const x = at(w, i - 15);
      const y = at(w, i - 2);
      const s0 = turned(x, 7) ^ turned(x, 18) ^ (x >>> 3);
      const s1 = turned(y, 17) ^ turned(y, 19) ^ (y >>> 10);
      w[i] = at(w, i - 16) + s0 + at(w, i - 7) + s1;
    }
    const state = this.#state;
    // A pattern would go through an iterator, for each block.
    let a = at(state, 0);
    let b = at(state, 1);
    let c = at(state, 2);
    let d = at(state, 3);
    let e = at(state, 4);
    let f = at(state, 5);
    let g = at(state, 6);
    let h = at(state, 7);
    for (let i = 0; i < 64; i++) {
      const s1 = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25);
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + at(ROUNDS, i) + at(w, i)) | 0;
      const s0 = turned(a, 2) ^ turned(a, 13) ^ turned(a, 22);
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    state[0] = at(state, 0) + a;
    state[1] = at(state, 1) + b;
    state[2] = at(state, 2) + c;
    state[3] = at(state, 3) + d;
    state[4] = at(state, 4) + e;
    state[5] = at(state, 5) + f;
    state[6] = at(state, 6) + g;
    state[7] = at(state, 7) + h;
  }
}

const BLOCK = 64;

function at(words: Int32Array, i: number): number {
  return words[i] ?? 0;
}

function turned(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by));
}

/** The first 32 bits of the fractional parts of a root of each of the first primes. */
function roots(count: number, exponent: number): Int32Array {
  const primes: number[] = [];
  for (let n = 2; primes.length < count; n++) if (primes.every((prime) => n % prime !== 0)) primes.push(n);
  return Int32Array.from(primes, (prime) => (prime ** exponent % 1) * 2 ** 32);
}

const FIRST = roots(8, 1 / 2);
const ROUNDS = roots(64, 1 / 3);
