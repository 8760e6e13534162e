/** The orders and their feed, at sluice and at the peers. */
export const ORDERS = '/orders';

/** The path of a feed of the orders that stays open and begins now. */
export async function placeNow(url: string): Promise<string> {
  const lines = await (await fetch(`${url}${ORDERS}/changes`)).text();
  const cursor = /^\{"end":.*?"cursor":"([\w-]+)"/m.exec(lines)?.[1];
  if (cursor === undefined) throw new Error(`${url}: no place in the changes: ${lines.slice(0, 300)}`);
  return `${ORDERS}/changes?follow=true&since=${cursor}`;
}
