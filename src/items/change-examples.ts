const NOW = [
  '{"checkpoint":{"cursor":"CQAA8LryARUATOOI4Ui3fNgqAAAAAAAAAAAAAAACfVIC3Q","upToDate":true,"rows":0,"removed":0,"bytes":0,"crc32":"00000000"}}',
  '{"end":{"cursor":"CQAA8LryARUATOOI4Ui3fNgqAAAAAAAAAAAAAAACfVIC3Q","upToDate":true,"rows":0,"removed":0,"bytes":0,"crc32":"00000000"}}',
];
const SINCE = [
  '{"id":"d00001","price":330}',
  '{"removed":{"id":"d00002"}}',
  '{"end":{"cursor":"CQAA8LryARUATOOI4Ui3fNgqAAAAAAAAAAAAAAAESPdhNA","upToDate":true,"rows":1,"removed":1,"bytes":56,"crc32":"2cf95929"}}',
];
const EVENTS = [
  'data: {"id":"d00001","price":330}',
  '',
  'data: {"removed":{"id":"d00002"}}',
  '',
  'event: checkpoint',
  'id: CQAA8LryARUATOOI4Ui3fNgqAAAAAAAAAAAAAAAESPdhNA',
  'data: {"checkpoint":{"cursor":"CQAA8LryARUATOOI4Ui3fNgqAAAAAAAAAAAAAAAESPdhNA","upToDate":true,"rows":1,"removed":1,"bytes":56,"crc32":"2cf95929"}}',
  '',
];
const FOLLOW = [
  '{"checkpoint":{"cursor":"CQAB8LryARUATOOI4Ui3fNgqAAAAAAAAAAAAAAACYK-33A","upToDate":false,"rows":0,"removed":0,"bytes":0,"crc32":"00000000"}}',
  '{"id":"d00001","price":326}',
  '{"id":"d00002","price":326}',
  '{"checkpoint":{"cursor":"CQAA8LryARUATOOI4Ui3fNgqAAAAAAAAAAAAAAACfVIC3Q","upToDate":true,"rows":2,"removed":0,"bytes":56,"crc32":"6e8d21b9"}}',
];

/**
 * Answers about a set of two rows, of which one changes and the other one is removed. Of answers that stay open they have
 * the beginning. A test makes these changes and compares all but the cursors.
 */
export const CHANGE_EXAMPLES = {
  lines: {
    now: { request: '/items/changes', answer: textOf(NOW) },
    since: {
      request: '/items/changes?since=CQAA8LryARUATOOI4Ui3fNgqAAAAAAAAAAAAAAACfVIC3Q&fields=price',
      answer: textOf(SINCE),
    },
  },
  events: {
    since: {
      request: '/items/changes?since=CQAA8LryARUATOOI4Ui3fNgqAAAAAAAAAAAAAAACfVIC3Q&fields=price',
      answer: textOf(EVENTS),
    },
  },
  follow: { follow: { request: '/items/stream?follow=true&fields=price', answer: textOf(FOLLOW) } },
};

function textOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}
