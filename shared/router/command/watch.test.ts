import test from 'ava';
import { isWatched } from './watch.ts';

test('modules are watched, and neither packages nor what an application writes beside its code', (t) => {
  for (const name of ['index.ts', 'controllers/notes/[id].mts', 'a\\b.js', 'view.tsx']) {
    t.true(isWatched(name), name);
  }
  const others = [
    'notes.db',
    'notes.db-wal',
    'server.log',
    'uploads/a.png',
    'data.json',
    'index.ts~',
  ];
  const hidden = ['.git/index.js', 'node_modules/ws/index.js', 'app\\.cache\\a.js'];
  for (const name of [...others, ...hidden]) t.false(isWatched(name), name);
});
