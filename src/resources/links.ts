import type { Client } from '../access/admission.ts';
import type { Right } from '../access/rights.ts';
import type { Request } from '../engine/edge.ts';
import { mayUse } from '../http/permit.ts';
import type { Resource } from './query/resource.ts';
import { closedTo } from './query/scope.ts';

/** What a server has beside its resources. */
export interface ServedBeside {
  readonly users: boolean;
  readonly exports: boolean;
  /** Who may have the editions of a resource now. null: it has none. */
  readonly editions: (resource: string) => 'open' | 'keyed' | null;
}

/** The URLs of a resource, in the order in which GET /resources shows them. */
interface Links {
  readonly page?: string;
  readonly stream?: string;
  readonly partitions?: string;
  readonly values?: string;
  readonly changes?: string;
  readonly exports?: string;
  readonly edition?: string;
}

/** The links that a client may follow: those for which its key has the right. */
export class ResourceLinks {
  readonly #client: Client;
  readonly #mount: string;
  readonly #serves: ServedBeside;

  constructor(client: Client, { notes: { mount } }: Pick<Request, 'notes'>, serves: ServedBeside) {
    this.#client = client;
    this.#mount = mount;
    this.#serves = serves;
  }

  /** What is known of a resource without asking the store. */
  of({ name, rows }: Resource): Links {
    const path = `${this.#mount}/${name}`;
    const streams = this.#may('stream', name);
    return {
      ...(this.#may('read', name) && { page: path }),
      ...(streams && { stream: `${path}/stream` }),
      ...(streams && { partitions: `${path}/partitions` }),
      ...(rows.changes && this.#may('changes', name) && { changes: `${path}/changes` }),
      ...(this.#serves.exports && this.#may('export', name) && { exports: `${this.#mount}/exports` }),
    };
  }

  /** `field`: one whose values can be listed. Rejects as the store does. */
  async ofReadable(resource: Resource, field: string | undefined, signal: AbortSignal): Promise<Links> {
    const { page, stream, partitions, changes, ...others } = this.of(resource);
    // Only the changes of a part need what a collection may lack.
    const isPart = resource.scope !== undefined;
    const refusal = changes !== undefined && isPart && (await resource.rows.changes?.refusal?.(signal));
    return {
      ...(page !== undefined && { page }),
      ...(stream !== undefined && { stream }),
      ...(partitions !== undefined && { partitions }),
      ...(page !== undefined &&
        field !== undefined && { values: `${page}/values?field=${encodeURIComponent(field)}` }),
      ...(changes !== undefined && !refusal && { changes }),
      ...others,
    };
  }

  /** The head of the newest edition. `resource`: all of it, for its files have all of it. */
  ofEdition(resource: Resource): Pick<Links, 'edition'> {
    const { name } = resource;
    const access = this.#serves.editions(name);
    if (access === null) return {};
    // What anybody may have without a key, a key does not take away.
    const may = access === 'open' || (this.#may('stream', name) && closedTo(this.#client, resource) === null);
    return may ? { edition: `${this.#mount}/${name}/edition` } : {};
  }

  /** The open streams of the server, which name all resources. */
  ofStreams(): { readonly streams?: string } {
    const may = mayUse(this.#client, { access: 'keyed', right: 'metrics' });
    return may ? { streams: `${this.#mount}/metrics/streams` } : {};
  }

  ofUsers(): Links {
    return this.#may('read', 'users') ? { page: `${this.#mount}/api/users` } : {};
  }

  #may(right: Right, resource: string): boolean {
    return mayUse(this.#client, { access: 'keyed', right, resource });
  }
}
