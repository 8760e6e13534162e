import fastJson from 'fast-json-stringify';
import {
  EXPORT,
  REMOVED_EXPORT,
  type Export,
  type ExportList,
  type RemovedExport,
} from '../exports/export.ts';
import { Type } from '../schema.ts';
import {
  CHECKPOINT,
  END,
  FAILURE,
  HEALTH,
  PAGE,
  PARTITIONS,
  PROBLEM,
  PROBLEM_PAGE,
  type HealthDocument,
  type PageDocument,
  type ProblemDocument,
  type ProblemPage,
  type TallyDocument,
} from './schemas.ts';
import { REMOVED_USER, USER, type RemovedUser, type User } from '../users/user.ts';

interface Serializers {
  /** An item in the form item.ts makes of it: `id` first, then all other fields in the object's order. */
  item(value: Readonly<Record<string, unknown>>): string;
  /** The same of a document with a field `id` of its own: `_id` first. */
  itemWithOwnId(value: Readonly<Record<string, unknown>>): string;
  problem(value: ProblemDocument): string;
  checkpoint(value: { readonly checkpoint: TallyDocument }): string;
  end(value: { readonly end: TallyDocument }): string;
  failure(value: { readonly error: ProblemDocument }): string;
  partitions(value: { readonly partitions: readonly { readonly url: string }[] }): string;
  problemPage(value: ProblemPage): string;
  page(value: PageDocument): string;
  health(value: HealthDocument): string;
  user(value: User): string;
  removedUser(value: RemovedUser): string;
  export(value: Export): string;
  exports(value: ExportList): string;
  removedExport(value: RemovedExport): string;
}

const BOUND_TEXT = Type.Optional(Type.String());
/** An export whose bounds of the price are texts: as numbers they would lose digits. */
const EXPORT_TEXT = {
  ...EXPORT,
  properties: {
    ...EXPORT.properties,
    request: Type.Composite([
      Type.Omit(EXPORT.properties.request, ['min_price', 'max_price']),
      Type.Object({ min_price: BOUND_TEXT, max_price: BOUND_TEXT }),
    ]),
  },
};
const exportOf: Serializers['export'] = fastJson(EXPORT_TEXT);
const exportList: Serializers['exports'] = fastJson(Type.Object({ data: Type.Array(EXPORT_TEXT) }));

/** Makes numbers of those texts. Only a name is followed by an unescaped `":`, so no value can be taken for one. */
function withBounds(json: string): string {
  return json.replace(/"(m(?:in|ax)_price)":"([^"]*)"/g, '"$1":$2');
}

/**
 * Every precompiled JSON serializer of the server. A schema is a whitelist: what it does not name is not written, and
 * fields come in its order. Compiled once, at start.
 */
export const serializers: Serializers = {
  item: fastJson({ type: 'object', properties: { id: {} }, additionalProperties: true }),
  itemWithOwnId: fastJson({ type: 'object', properties: { _id: {} }, additionalProperties: true }),
  problem: fastJson(PROBLEM),
  checkpoint: fastJson(CHECKPOINT),
  end: fastJson(END),
  failure: fastJson(FAILURE),
  partitions: fastJson(PARTITIONS),
  problemPage: fastJson(PROBLEM_PAGE),
  health: fastJson(HEALTH),
  page: fastJson(PAGE),

  // Nothing is required here: fast-json-stringify writes required fields first, and lists have the stored order.
  user: fastJson(Type.Partial(USER)),
  removedUser: fastJson(REMOVED_USER),
  export: (value) => withBounds(exportOf(value)),
  exports: (value) => withBounds(exportList(value)),
  removedExport: fastJson(REMOVED_EXPORT),
};
