// The rules in force, and the outcome of each attempt to load others. Sources deliver the rules.
import type { Clock } from '../../shared/clock.ts';
import { toCountText } from '../../shared/count-text.ts';
import type { Log } from '../../shared/log.ts';
import { isError, isNote, isWarning, type Problem } from '../../shared/rules/problem/problem.ts';
import { formatProblem, logProblems } from '../../shared/rules/problem/problem-text.ts';
import type { RuleSet } from '../../shared/rules/rule.ts';
import type { Health } from '../health.ts';
import type { Metrics } from '../metrics.ts';
import type { LoadResult } from './source.ts';

export interface RulesInForce {
  /** Undefined before the first good load. */
  readonly current: RuleSet | undefined;
  /** Resolves after the first good load: a failed one is not an initial configuration. */
  readonly firstGoodLoad: Promise<void>;
  /** A good load replaces the rules at once; after a bad one the old ones stay. */
  apply(result: LoadResult): void;
  /** The rules of the last good load from now on, as some of them have ended. */
  renew(ruleSet: RuleSet): void;
  /** Several lines for the debug port: the rules in force, since when, and why a later load failed. */
  describe(): string;
}

export interface RulesInForceDeps {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly health: Health;
  readonly clock: Clock;
  /** Whether the ports that decide stay closed until there are rules. */
  readonly portsWait: boolean;
}

/** Limit of problems of a load on the debug port. */
const maxShown = 50;

export function createRulesInForce({
  log,
  metrics,
  health,
  clock,
  portsWait,
}: RulesInForceDeps): RulesInForce {
  const successes = metrics.counter('ratelimit.service.config_load_success');
  const failures = metrics.counter('ratelimit.service.config_load_error');
  const firstGoodLoad = Promise.withResolvers<void>();
  const withoutRules = portsWait
    ? 'there are no rules, and the gRPC and HTTP ports stay closed until this is repaired'
    : 'there are no rules, every decision fails until this is repaired';
  let current: RuleSet | undefined;
  let inForce = portsWait
    ? 'no rules were loaded yet, the gRPC and HTTP ports are closed'
    : 'no rules were loaded yet, every decision fails';
  let lastFailure: { readonly at: string; readonly problems: readonly Problem[] } | undefined;
  let lastOrigin = '';
  let isFirst = true;
  let saidWarnings = new Set<string>();

  /** A warning is logged when it appears, not with each load that still has it. */
  function sayWarnings(warnings: readonly Problem[], isComplete: boolean): void {
    const texts = warnings.map(formatProblem);
    const fresh = warnings.filter((_, index) => !saidWarnings.has(texts[index] ?? ''));
    logProblems(log.warning, fresh.filter(isWarning), 'Configuration');
    logProblems(log.info, fresh.filter(isNote), 'Configuration');
    saidWarnings = new Set(isComplete ? texts : [...saidWarnings, ...texts]);
  }

  function applyGood(result: LoadResult & { readonly ok: true }): void {
    const { ruleSet, origin, warnings } = result;
    current = ruleSet;
    if (log.isDebug) for (const line of ruleSet.trail()) log.debug(line);
    successes.add(1);
    health.set('config', ruleSet.domains.size > 0);
    lastOrigin = origin;
    inForce = describeInForce(ruleSet);
    sayWarnings(warnings, true);
    const text = `Successfully loaded new configuration: ${origin}, ${countsOf(ruleSet)}`;
    // Logged at the default level when operators wait for it: the first load, and a repair that worked.
    if (isFirst || lastFailure !== undefined) log.notice(text);
    else log.info(text);
    lastFailure = undefined;
  }

  function applyBad({ problems, origin, isEmptied }: LoadResult & { readonly ok: false }): void {
    failures.add(1);
    // The rules stay, and balancers see in the health that the configuration is gone.
    if (isEmptied) health.set('config', false);
    const errors = problems.filter(isError);
    lastFailure = { at: now(), problems: errors };
    sayWarnings(
      problems.filter((problem) => !isError(problem)),
      false,
    );
    const consequence =
      current === undefined ? withoutRules : 'the rules loaded before stay in force';
    logProblems(
      log.error,
      errors,
      'Error loading new configuration',
      `could not load ${origin} (${toCountText(errors.length, 'error')}): ${consequence}`,
    );
  }

  function describeInForce(ruleSet: RuleSet): string {
    return `${lastOrigin}, ${countsOf(ruleSet)}, since ${now()}`;
  }

  function now(): string {
    return new Date(clock.wallMs()).toISOString();
  }

  return {
    get current() {
      return current;
    },
    firstGoodLoad: firstGoodLoad.promise,
    apply(result) {
      if (result.ok) applyGood(result);
      else applyBad(result);
      isFirst = false;
      if (result.ok) firstGoodLoad.resolve();
    },
    renew(ruleSet) {
      current = ruleSet;
      inForce = describeInForce(ruleSet);
    },
    describe() {
      const lines = [`in force: ${inForce}`];
      if (lastFailure !== undefined) {
        lines.push(`last load: failed at ${lastFailure.at}`);
        const texts = new Set(lastFailure.problems.map(formatProblem));
        lines.push(...[...texts].slice(0, maxShown));
        if (texts.size > maxShown) lines.push(`${texts.size - maxShown} more`);
      }
      return lines.join('\n');
    },
  };
}

function countsOf({ domains, limitCount }: RuleSet): string {
  return `${toCountText(domains.size, 'domain')}, ${toCountText(limitCount, 'limit')}`;
}
