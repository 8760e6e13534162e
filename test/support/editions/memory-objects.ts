import type { ObjectStore } from '../../../src/store/objects.ts';

/** Objects in memory. `before` runs before each object is put or removed, and may reject. */
export class MemoryObjects implements ObjectStore {
  readonly all = new Map<string, { readonly bytes: Uint8Array; readonly storedAt: number }>();
  before: (path: string) => void | Promise<void> = () => undefined;
  /** Runs before the bytes of an object are given. */
  got: (path: string) => void = () => undefined;
  now: () => number = Date.now;

  async put(path: string, bytes: Uint8Array, how?: { readonly isNew?: boolean }): Promise<boolean> {
    await this.before(path);
    if (how?.isNew === true && this.all.has(path)) return false;
    this.all.set(path, { bytes: new Uint8Array(bytes), storedAt: this.now() });
    return true;
  }

  get(path: string): Promise<Uint8Array | null> {
    this.got(path);
    return Promise.resolve(this.all.get(path)?.bytes ?? null);
  }

  async *read(path: string, start: number, end: number): AsyncGenerator<Uint8Array, void, undefined> {
    const bytes = await this.get(path);
    if (bytes) yield bytes.subarray(start, end);
  }

  size(path: string): Promise<number | null> {
    return Promise.resolve(this.all.get(path)?.bytes.length ?? null);
  }

  async *list(
    prefix: string,
  ): AsyncGenerator<{ path: string; bytes: number; storedAt: number }, void, undefined> {
    for (const [path, { bytes, storedAt }] of [...this.all])
      if (path.startsWith(prefix)) yield await Promise.resolve({ path, bytes: bytes.length, storedAt });
  }

  async remove(path: string): Promise<void> {
    await this.before(path);
    this.all.delete(path);
  }

  ping(): Promise<void> {
    return Promise.resolve();
  }

  close(): void {
    // nothing is open
  }
}
