import { changes, imports, orders } from './scenarios/orders.ts';
import { editions } from './scenarios/editions.ts';
import { engines } from './scenarios/engines.ts';
import { others } from './scenarios/others.ts';
import { connections, depths, pages } from './scenarios/pages.ts';
import type { Scenario } from './scenarios/scenario.ts';
import { sizes, streams } from './scenarios/streams.ts';

/** Every scenario for a store with `rows` items: everything that `npm run bench` can measure. */
export function createScenarios(rows: number): readonly Scenario[] {
  return [
    ...streams(rows),
    ...pages(rows),
    ...orders(),
    ...depths(rows),
    ...connections(),
    ...sizes(rows),
    ...changes(),
    ...imports(),
    ...editions(),
    ...others(),
    ...engines(rows),
  ];
}
