// Runs a file of routing cases on every mount that can express them:
//   npm run -s test:routing            the cases next to this file
//   ROUTING_CASES=path npm run -s test:routing
// A case passes when it passes on all its mounts. Ends with `N passed, N failed`.
import { readCaseFile } from './case-file.ts';
import { mountNames, reasonToSkip } from './mounts.ts';
import { runCase } from './run-case.ts';

const file = await readCaseFile(process.env['ROUTING_CASES']);
const totals = { passed: 0, failed: 0 };
for (const routingCase of file.cases) {
  const { id, title } = routingCase;
  const failures: string[] = [];
  let sent = 0;
  for (const mount of mountNames) {
    const reason = reasonToSkip(mount, routingCase);
    if (reason !== undefined) {
      console.log(`skipped on ${mount}: ${id} (${reason})`);
      continue;
    }
    sent += 1;
    const found = await runCase(file, routingCase, mount).catch((error) => [String(error)]);
    failures.push(...found.map((difference) => `  ${mount}: ${difference}`));
  }
  if (sent === 0) failures.push('  no mount can express it');
  totals[failures.length === 0 ? 'passed' : 'failed'] += 1;
  if (failures.length > 0) console.log([`failed: ${id} ${title}`, ...failures].join('\n'));
}
console.log(`${totals.passed} passed, ${totals.failed} failed`);
process.exitCode = totals.failed === 0 ? 0 : 1;
