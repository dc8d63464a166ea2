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

export class RulesInForce {
  readonly #deps: RulesInForceDeps;
  readonly #successes;
  readonly #failures;
  readonly #firstGoodLoad = Promise.withResolvers<void>();
  readonly #withoutRules;
  #current: RuleSet | undefined;
  #inForce;
  #lastFailure: { readonly at: string; readonly problems: readonly Problem[] } | undefined;
  #lastOrigin = '';
  #isFirst = true;
  #loggedWarnings = new Set<string>();

  constructor(deps: RulesInForceDeps) {
    this.#deps = deps;
    this.#successes = deps.metrics.counter('ratelimit.service.config_load_success');
    this.#failures = deps.metrics.counter('ratelimit.service.config_load_error');
    this.#withoutRules = deps.portsWait
      ? 'there are no rules, and the gRPC and HTTP ports stay closed until this is repaired'
      : 'there are no rules, every decision fails until this is repaired';
    this.#inForce = deps.portsWait
      ? 'no rules were loaded yet, the gRPC and HTTP ports are closed'
      : 'no rules were loaded yet, every decision fails';
  }

  /** Logs a warning when it appears, not with each load that still has it. */
  #logWarnings(warnings: readonly Problem[], isComplete: boolean): void {
    const texts = warnings.map(formatProblem);
    const fresh = warnings.filter((_, index) => !this.#loggedWarnings.has(texts[index] ?? ''));
    logProblems(this.#deps.log.warning, fresh.filter(isWarning), 'Configuration');
    logProblems(this.#deps.log.info, fresh.filter(isNote), 'Configuration');
    this.#loggedWarnings = new Set(isComplete ? texts : [...this.#loggedWarnings, ...texts]);
  }

  #applyGood(result: LoadResult & { readonly ok: true }): void {
    const { ruleSet, origin, warnings } = result;
    this.#current = ruleSet;
    if (this.#deps.log.isDebug) for (const line of ruleSet.trail()) this.#deps.log.debug(line);
    this.#successes.add(1);
    this.#deps.health.set('config', ruleSet.domains.size > 0);
    this.#lastOrigin = origin;
    this.#inForce = this.#describeInForce(ruleSet);
    this.#logWarnings(warnings, true);
    const text = `Successfully loaded new configuration: ${origin}, ${countsOf(ruleSet)}`;
    // Logged at the default level when operators wait for it: the first load, and a successful repair.
    if (this.#isFirst || this.#lastFailure !== undefined) this.#deps.log.notice(text);
    else this.#deps.log.info(text);
    this.#lastFailure = undefined;
  }

  #applyBad({ problems, origin, isEmptied }: LoadResult & { readonly ok: false }): void {
    this.#failures.add(1);
    // The rules stay in force, and the health shows balancers that the configuration is missing.
    if (isEmptied) this.#deps.health.set('config', false);
    const errors = problems.filter(isError);
    this.#lastFailure = { at: this.#now(), problems: errors };
    this.#logWarnings(
      problems.filter((problem) => !isError(problem)),
      false,
    );
    const consequence =
      this.#current === undefined ? this.#withoutRules : 'the rules loaded before stay in force';
    logProblems(
      this.#deps.log.error,
      errors,
      'Error loading new configuration',
      `could not load ${origin} (${toCountText(errors.length, 'error')}): ${consequence}`,
    );
  }

  #describeInForce(ruleSet: RuleSet): string {
    return `${this.#lastOrigin}, ${countsOf(ruleSet)}, since ${this.#now()}`;
  }

  #now(): string {
    return new Date(this.#deps.clock.wallMs()).toISOString();
  }

  /** Undefined before the first good load. */
  get current(): RuleSet | undefined {
    return this.#current;
  }

  /** Resolves after the first good load: a failed one is not an initial configuration. */
  get firstGoodLoad(): Promise<void> {
    return this.#firstGoodLoad.promise;
  }

  /** A good load replaces the rules at once; after a failed one the old rules stay in force. */
  apply(result: LoadResult): void {
    if (result.ok) this.#applyGood(result);
    else this.#applyBad(result);
    this.#isFirst = false;
    if (result.ok) this.#firstGoodLoad.resolve();
  }

  /** Replaces the rules by those of the last good load that have not ended. */
  renew(ruleSet: RuleSet): void {
    this.#current = ruleSet;
    this.#inForce = this.#describeInForce(ruleSet);
  }

  /** Several lines for the debug port: the rules in force, since when, and why a later load failed. */
  describe(): string {
    const lines = [`in force: ${this.#inForce}`];
    if (this.#lastFailure !== undefined) {
      lines.push(`last load: failed at ${this.#lastFailure.at}`);
      const texts = new Set(this.#lastFailure.problems.map(formatProblem));
      lines.push(...[...texts].slice(0, maxShown));
      if (texts.size > maxShown) lines.push(`${texts.size - maxShown} more`);
    }
    return lines.join('\n');
  }
}

function countsOf({ domains, limitCount }: RuleSet): string {
  return `${toCountText(domains.size, 'domain')}, ${toCountText(limitCount, 'limit')}`;
}
