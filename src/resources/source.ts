import { changesFrom } from './changes/cursor.ts';
import { getOrMake } from '../get-or-make.ts';
import { estimator } from './stream/estimate.ts';
import type { RowSource } from './row-source.ts';
import { columnKinds } from './query/kinds.ts';
import { knownFields, readTypedPlan } from './query/read-plan.ts';
import type { Resource } from './query/resource.ts';

const sources = new WeakMap<Resource, RowSource>();

/** What the routes of a resource, or of a part of it, read. It is made once. */
export function sourceOf(resource: Resource): RowSource {
  return getOrMake(sources, resource, () => make(resource));
}

function make(resource: Resource): RowSource {
  const { name, rows, form, scope, shown, kinds } = resource;
  let streams: RowSource['streams'] | undefined;
  return {
    ...{ resource, collection: name, rows, shown, columns: form.columns },
    // There may be many keys, and few of them stream.
    get streams() {
      return (streams ??= resource.streamsOf(rows));
    },
    readPlan: (query, signal, token, isById) => readTypedPlan(query, token, resource, signal, isById),
    readFields: (query) => knownFields(form.fields.read(query), resource),
    columnKinds: form.closed ? undefined : columnKinds(kinds, shown),
    changesFrom: changesFrom(rows, name),
    estimate: scope?.where.length ? unknownRows : estimator(rows),
  };
}

/** A figure of a part that is not exact could give other rows away. */
const unknownRows: RowSource['estimate'] = () => null;
