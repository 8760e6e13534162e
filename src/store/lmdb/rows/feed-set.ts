import type { FeedSet } from '../feed/feed.ts';
import type { Loads } from '../load/loads.ts';
import type { Tables } from '../tables.ts';
import { checkUsable } from './collection.ts';
import { keyOfRow, rowsPrefix } from './keyed.ts';
import { identityOf, type Resources } from './record.ts';
import { recordOf } from './write.ts';

/** A resource, as the set whose changes a feed tells. `begin` is called before each look at the file. */
export function resourceFeedSet(
  tables: Tables,
  resources: Resources,
  collection: string,
  loads: Loads,
  begin: () => void,
): FeedSet {
  return {
    rows: tables.rows,
    present: () => {
      begin();
      const record = recordOf(resources, collection);
      return { number: record.number, identity: identityOf(record) };
    },
    assertWhole: () => loads.assertWhole(),
    keyOfId: (id, { number }) => keyOfRow(rowsPrefix({ number }), id),
    checkPlan: (plan) => checkUsable(recordOf(resources, collection), plan),
  };
}
