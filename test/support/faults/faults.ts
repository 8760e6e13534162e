import { withOverrides } from '../store/with-overrides.ts';
import type { Batch } from '../../../src/store/batch.ts';
import type { FileStore, FileWriter } from '../../../src/store/files.ts';
import type { Store } from '../../../src/store/store.ts';

/**
 * When a fault strikes an operation: `before` the operation, or `after` it, so that the operation is done but
 * its result is lost.
 */
export type Moment = 'before' | 'after';

/** Makes the k-th operation of a port fail, counted from the call of `arm`. */
export class Faults {
  /** Whether the fault has struck. */
  struck = false;
  #left = Infinity;
  #moment: Moment = 'before';
  #error: () => Error = () => new Error('a fault that no test armed');

  /** Makes the `k`-th operation from now on fail with this error. */
  arm(k: number, moment: Moment, error: () => Error): void {
    this.#left = k;
    this.#moment = moment;
    this.#error = error;
    this.struck = false;
  }

  disarm(): void {
    this.#left = Infinity;
  }

  /** Wraps a port so that its functions fail when it is their turn. */
  port<T extends object>(port: T): T {
    return new Proxy(port, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== 'function') return member;
        return (...call: unknown[]): unknown =>
          this.#run(() => Reflect.apply(member, target, call) as unknown);
      },
    });
  }

  /** Wraps a store so that its items and users fail. */
  store(store: Store): Store {
    return withOverrides(store, {
      records: async (declaration) => this.port(await store.records(declaration)),
      open: async (...call) => this.port(await store.open(...call)),
    });
  }

  /** Wraps a file store. Its writers also fail, and so do its reads before their first byte. */
  files(files: FileStore): FileStore {
    const port = this.port(files);
    return {
      create: async (name) => this.port(await port.create(name)),
      read: async function* (...call) {
        yield* port.read(...call);
      },
      size: (name) => port.size(name),
      remove: (name) => port.remove(name),
      names: (...call) => port.names(...call),
    };
  }

  /**
   * Runs an operation, or the rest of it. When its result is lost, a batch is released and a file is closed.
   */
  #run(operation: () => unknown): unknown {
    this.#left--;
    if (this.#left !== 0) return operation();
    this.struck = true;
    if (this.#moment === 'before') return this.#failed(Promise.resolve());
    return this.#failed(
      Promise.resolve(operation()).then(async (result) => {
        const unheard = result as Partial<Batch & FileWriter> | null;
        unheard?.release?.();
        await unheard?.close?.();
      }),
    );
  }

  async #failed(done: Promise<unknown>): Promise<never> {
    await done;
    throw this.#error();
  }
}
