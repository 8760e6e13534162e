import { changesFrom } from './changes/cursor.ts';
import { getOrMake } from '../get-or-make.ts';
import { estimator } from './stream/estimate.ts';
import { idReader } from './row/id.ts';
import type { RowSource } from './row-source.ts';
import { kindOf } from './query/kind-table.ts';
import { columnKinds, readShown } from './query/kinds.ts';
import { knownFields, readTypedPlan } from './query/read-plan.ts';
import type { Resource } from './query/resource.ts';

const sources = new WeakMap<Resource, RowSource>();

/** What the routes of a resource, or of a part of it, read. It is made once. */
export function sourceOf(resource: Resource): RowSource {
  return getOrMake(sources, resource, () => make(resource));
}

function make(resource: Resource): RowSource {
  const { name, rows, form, idType, scope, shown, kinds } = resource;
  let streams: RowSource['streams'] | undefined;
  return {
    ...{ collection: name, rows, shown, columns: form.columns },
    // There may be many keys, and few of them stream.
    get streams() {
      return (streams ??= resource.streamsOf(rows));
    },
    readPlan: (query, signal, token, isById) => readTypedPlan(query, token, resource, signal, isById),
    readFields: (query) => knownFields(form.fields.read(query), resource),
    readShown: (text, path, like) => {
      const kind = kindOf(like) ?? kinds.get(path);
      return kind && readShown(kind, text);
    },
    columnKinds: form.closed ? undefined : columnKinds(kinds, shown),
    readId: idReader(rows, idType),
    changesFrom: changesFrom(rows, name),
    estimate: scope?.where.length ? unknownRows : estimator(rows),
  };
}

/** A figure of a part that is not exact could give other rows away. */
const unknownRows: RowSource['estimate'] = () => null;
