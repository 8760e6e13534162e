import { changesFrom } from './changes/start-cursor.ts';
import { estimator } from './stream/estimate.ts';
import { idReader } from './row/id.ts';
import type { RowSource } from './row/source.ts';
import { resourcePlan } from './query/read-plan.ts';
import type { Resource } from './query/resource.ts';

const sources = new WeakMap<Resource, RowSource>();

/** What the routes of a resource, or of a part of it, read. It is made once. */
export function sourceOf(resource: Resource): RowSource {
  const source = sources.get(resource) ?? make(resource);
  sources.set(resource, source);
  return source;
}

function make(resource: Resource): RowSource {
  const { name, rows, form, idType, scope } = resource;
  return {
    ...{ rows, columns: form.columns, after: form.after },
    get streams() {
      return resource.streams;
    },
    plan: resourcePlan(resource),
    readId: idReader(rows, idType),
    changesFrom: changesFrom(rows, name),
    estimate: scope?.where.length ? unknownRows : estimator(rows, { now: () => performance.now() }),
  };
}

/** A figure of a part that is not exact could give other rows away. */
const unknownRows: RowSource['estimate'] = () => () => Promise.resolve(null);
