import { showExports } from './exports.js';
import { showItems } from './items.js';
import { showServer } from './server.js';
import { showStream } from './stream.js';

const filter = showItems();
const server = showServer();
showStream(filter, server);
showExports(filter);
