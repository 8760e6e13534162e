import type { Batch } from '../../src/store/batch.ts';
import type { FileStore, FileWriter } from '../../src/store/files.ts';
import type { Store } from '../../src/store/store.ts';

/** When a fault strikes an operation: `before` it is done, or `after`, so that it is done and nobody knows. */
export type Moment = 'before' | 'after';

/** Lets one of the operations of a port fail: the k-th from when it is armed. */
export class Faults {
  /** Whether the fault has struck. */
  struck = false;
  #left = Infinity;
  #moment: Moment = 'before';
  #error: () => Error = () => new Error('a fault that nobody armed');

  /** From now on the `k`-th operation fails with this. */
  arm(k: number, moment: Moment, error: () => Error): void {
    this.#left = k;
    this.#moment = moment;
    this.#error = error;
    this.struck = false;
  }

  disarm(): void {
    this.#left = Infinity;
  }

  /** The same port, whose functions fail when it is their turn. */
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

  /** A store whose items and users fail. */
  store(store: Store): Store {
    const { name, exports, files } = store;
    return {
      ...{ name, exports, files, items: this.port(store.items), users: this.port(store.users) },
      ping: () => store.ping(),
      close: () => store.close(),
    };
  }

  /** Files, whose writers fail, too, and what is read of them before its first byte. */
  files(files: FileStore): FileStore {
    const port = this.port(files);
    return {
      create: async (name) => this.port(await port.create(name)),
      read: async function* (...call) {
        yield* port.read(...call);
      },
      size: (name) => port.size(name),
      remove: (name) => port.remove(name),
      names: () => port.names(),
    };
  }

  /** Runs an operation, or what is left of it. A batch that nobody hears of is given back, a file closed. */
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
