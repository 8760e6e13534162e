import { showExports } from './exports.js';
import { showItems } from './items.js';
import { showResources } from './resources.js';
import { showServer } from './server.js';
import { showStream } from './stream.js';

const filter = showItems();
const server = showServer();
showStream(filter, server);
showExports(filter);
showResources().catch((error) => console.error(error));
