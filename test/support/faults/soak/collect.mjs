/** Loaded by `--import` into a server: collects garbage every five seconds, so that its heap is what it holds. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const COLLECT_MS = 5_000;

setFlagsFromString('--expose_gc');
const collect = runInNewContext('gc');
setInterval(collect, COLLECT_MS).unref();
