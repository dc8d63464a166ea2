// Finds what a set of Envoy configuration files asks a rate limit service: every descriptor that a route, virtual host
// or filter can send, with its domain. Where a more specific setting overrides a general one only under some
// conditions, both count as sent.
import type { Reporter } from '../../../shared/rules/problem/reporter.ts';
import type { TreeMap, TreeNode } from '../../../shared/rules/yaml/yaml-node.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import { type ActionEntry, toEntry } from './envoy-action.ts';
import { fieldOf, findAllOfType, isTrue, mapOf, mapsOf, textOf } from './envoy-fields.ts';
import { findLateMetadata, type LateMetadata, namespaceRead } from './late-metadata.ts';

export interface EnvoyFile {
  readonly root: TreeNode;
  readonly reporter: Reporter;
}

/** One descriptor that Envoy may send. */
export interface AskedDescriptor {
  readonly domain: string;
  readonly entries: readonly ActionEntry[];
  /** Whether it is a bucket of a quota filter, whose entries have no order. */
  readonly isBucket: boolean;
  /** Whether it may carry its own limit, and so needs no rule. */
  readonly hasOwnLimit: boolean;
  /** Hits of each request; NaN where they cannot be read. */
  readonly cost: number;
  readonly reporter: Reporter;
  readonly offset: number;
}

export interface AskedDomain {
  readonly domain: string;
  readonly reporter: Reporter;
  readonly offset: number;
}

export interface UnsentActions {
  readonly reporter: Reporter;
  readonly offset: number;
  readonly message: string;
  readonly hint?: string;
}

export interface EnvoyQuestions {
  readonly domains: readonly AskedDomain[];
  readonly descriptors: readonly AskedDescriptor[];
  /** Actions that no filter sends, or whose filter lacks the data that they read. */
  readonly unsent: readonly UnsentActions[];
  /** Whether the list of descriptors is complete: none comes from elsewhere or is unknown. */
  readonly isComplete: boolean;
}

interface RateLimitFilter extends AskedDomain {
  readonly name: string;
  readonly stage: number;
  readonly late: LateMetadata;
}

interface RouteConfiguration {
  readonly map: TreeMap;
  readonly reporter: Reporter;
}

const types = {
  manager: 'extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
  routes: 'config.route.v3.RouteConfiguration',
  filter: 'extensions.filters.http.ratelimit.v3.RateLimit',
  perRoute: 'extensions.filters.http.ratelimit.v3.RateLimitPerRoute',
  localFilter: 'extensions.filters.http.local_ratelimit.v3.LocalRateLimit',
  networkFilter: 'extensions.filters.network.ratelimit.v3.RateLimit',
  quotaFilter: 'extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaFilterConfig',
  bucket: 'extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaBucketSettings',
} as const;

/** Far above real use. */
const maxDescriptors = 10_000;

/** Problems go to the files' reporters. */
export function readEnvoyQuestions(files: readonly EnvoyFile[]): EnvoyQuestions {
  const domains: AskedDomain[] = [];
  const descriptors: AskedDescriptor[] = [];
  const unsent: UnsentActions[] = [];
  let isComplete = true;
  let isFull = false;

  const named = new Map<string, RouteConfiguration>();
  const used = new Set<RouteConfiguration>();
  for (const { root, reporter } of files) {
    for (const map of findAllOfType(root, types.routes)) {
      named.set(textOf(map, 'name'), { map, reporter });
    }
  }

  function leaveOut(reporter: Reporter, offset: number, what: string): void {
    isComplete = false;
    const hint = 'rules that no action can reach are then not reported';
    reporter.advise('envoy-not-checked', offset, '', `not checked: ${what}`, hint);
  }

  function add(descriptor: AskedDescriptor): void {
    if (descriptors.length < maxDescriptors) descriptors.push(descriptor);
    else if (!isFull) {
      isFull = true;
      const what = `this and what follows: more than ${maxDescriptors} descriptors`;
      leaveOut(descriptor.reporter, descriptor.offset, what);
    }
  }

  /** Metadata that a filter writes after the rate limit filter exists only at the end of the stream. */
  function reportLate(action: TreeMap, senders: readonly RateLimitFilter[], reporter: Reporter) {
    const namespace = namespaceRead(action);
    if (namespace === undefined) return;
    const writer = senders.map(({ late }) => late.get(namespace)).find((name) => name);
    if (writer === undefined) return;
    const message = `the metadata '${toExcerpt(namespace)}' is empty here: the filter '${toExcerpt(writer)}' writes it after the rate limit filter`;
    const hint = 'put that filter before the rate limit filter';
    unsent.push({ reporter, offset: action.offset, message, hint });
  }

  function addRateLimit(
    rateLimit: TreeMap,
    domains: Iterable<string>,
    senders: readonly RateLimitFilter[],
    cluster: string | undefined,
    reporter: Reporter,
  ): void {
    const entries: ActionEntry[] = [];
    for (const action of mapsOf(rateLimit, 'actions')) {
      if (!isTrue(rateLimit, 'apply_on_stream_done')) reportLate(action, senders, reporter);
      const entry = toEntry(action, cluster);
      if (entry === undefined) {
        leaveOut(reporter, action.offset, 'this action is unknown, and so is what it sends');
        return;
      }
      entries.push(entry);
    }
    const { offset } = rateLimit;
    const hasOwnLimit = mapOf(rateLimit, 'limit') !== undefined;
    if (entries.length === 0) return;
    const addend = mapOf(rateLimit, 'hits_addend');
    // Without a number, the cost comes from the request or is 1.
    const cost = Number((addend && textOf(addend, 'number')) || 1);
    const isBucket = false;
    for (const domain of domains) {
      add({ domain, entries, isBucket, hasOwnLimit, cost, reporter, offset });
    }
  }

  function addNetworkFilter(filter: TreeMap, reporter: Reporter): void {
    const domain = addDomain(filter, reporter);
    for (const descriptor of mapsOf(filter, 'descriptors')) {
      const entries = mapsOf(descriptor, 'entries').map((entry) => {
        const value = textOf(entry, 'value');
        const isFixed = !value.includes('%');
        const { offset } = entry;
        return {
          key: textOf(entry, 'key'),
          value: isFixed ? value : undefined,
          isOptional: false,
          offset,
        };
      });
      const { offset } = descriptor;
      add({ domain, entries, isBucket: false, hasOwnLimit: false, cost: 1, reporter, offset });
    }
  }

  function addQuotaFilter(filter: TreeMap, reporter: Reporter): void {
    const domain = addDomain(filter, reporter);
    for (const bucket of findAllOfType(filter, types.bucket)) {
      const builder = mapOf(bucket, 'bucket_id_builder');
      const values = builder && mapOf(builder, 'bucket_id_builder');
      const entries = [...(values?.entries ?? [])].map(([key, { value }]) => {
        const fixed = value.kind === 'map' ? fieldOf(value, 'string_value') : undefined;
        const text = value.kind === 'map' && fixed ? textOf(value, 'string_value') : undefined;
        return { key, value: text, isOptional: false, offset: value.offset };
      });
      // Without entries, requests are let through or refused unreported.
      if (entries.length === 0) continue;
      const { offset } = bucket;
      add({ domain, entries, isBucket: true, hasOwnLimit: false, cost: 1, reporter, offset });
    }
  }

  /** `map`: where the filter, or its override, names its domain. */
  function addDomain(map: TreeMap, reporter: Reporter): string {
    const domain = textOf(map, 'domain');
    const offset = fieldOf(map, 'domain')?.offset ?? map.offset;
    if (domain !== '') domains.push({ domain, reporter, offset });
    return domain;
  }

  function addManager(manager: TreeMap, reporter: Reporter): void {
    const filters: RateLimitFilter[] = [];
    const localStages = new Set<number>();
    const items = mapsOf(manager, 'http_filters');
    for (const [position, item] of items.entries()) {
      const config = fieldOf(item, 'typed_config');
      for (const map of findAllOfType(config, types.filter)) {
        const domain = addDomain(map, reporter);
        const { offset } = map;
        const late = findLateMetadata(items, position);
        const [name, stage] = [textOf(item, 'name'), stageOf(map)];
        const filter = { name, stage, late, domain, reporter, offset };
        filters.push(filter);
        for (const rateLimit of mapsOf(map, 'rate_limits')) {
          addRateLimit(rateLimit, [domain], [filter], undefined, reporter);
        }
      }
      for (const map of findAllOfType(config, types.quotaFilter)) addQuotaFilter(map, reporter);
      for (const map of findAllOfType(config, types.localFilter)) localStages.add(stageOf(map));
      const discovery = mapOf(item, 'config_discovery');
      if (discovery && isTypeUrlOf(discovery, types.filter)) {
        leaveOut(reporter, discovery.offset, 'this filter is not in these files');
      }
    }
    const routes = findRoutes(manager, reporter, filters.length > 0);
    if (routes !== undefined) addRoutes(routes, filters, localStages);
  }

  function findRoutes(
    manager: TreeMap,
    reporter: Reporter,
    isLimited: boolean,
  ): RouteConfiguration | undefined {
    const own = mapOf(manager, 'route_config');
    if (own !== undefined) return { map: own, reporter };
    const rds = mapOf(manager, 'rds');
    const found = rds && named.get(textOf(rds, 'route_config_name'));
    if (found !== undefined) return found;
    if (!isLimited) return undefined;
    if (rds !== undefined) {
      const name = toExcerpt(textOf(rds, 'route_config_name'));
      leaveOut(
        reporter,
        rds.offset,
        `the routes '${name}' come over RDS, and are not in these files`,
      );
    } else if (mapOf(manager, 'scoped_routes') !== undefined) {
      leaveOut(reporter, manager.offset, 'scoped routes are not followed');
    } else leaveOut(reporter, manager.offset, 'this connection manager has no routes');
    return undefined;
  }

  function addRoutes(
    routes: RouteConfiguration,
    filters: readonly RateLimitFilter[],
    localStages: ReadonlySet<number>,
  ): void {
    const { map, reporter } = routes;
    used.add(routes);
    if (mapOf(map, 'vhds') !== undefined && filters.length > 0) {
      leaveOut(reporter, map.offset, 'virtual hosts that come over VHDS');
    }

    function addPosition(
      list: readonly TreeMap[],
      settings: readonly Settings[],
      accepts: (set: FilterSettings) => boolean,
      cluster: string | undefined,
    ): void {
      const domainsOf = new Map(
        filters.map((filter) => {
          const sets = settings.flatMap((each) => each.get(filter) ?? []).filter(accepts);
          return [filter, new Set(sets.map(({ domain }) => domain))] as const;
        }),
      );
      for (const rateLimit of list) {
        const { offset } = rateLimit;
        const stage = stageOf(rateLimit);
        const ofStage = filters.filter((filter) => filter.stage === stage);
        const all = new Set(ofStage.flatMap((filter) => [...(domainsOf.get(filter) ?? [])]));
        if (ofStage.length === 0 && !localStages.has(stage)) {
          const message = 'these actions are never sent: no rate limit filter has their stage';
          unsent.push({ reporter, offset, message });
        } else if (all.size === 0 && ofStage.length > 0) {
          const message =
            'these actions are never sent: every route has limits of its own, ignores these, or only answers';
          unsent.push({ reporter, offset, message });
        }
        addRateLimit(rateLimit, all, ofStage, cluster, reporter);
      }
    }

    /** The settings of the filters in `typed_per_filter_config` of a route, host or cluster: the most specific one
     * applies. */
    function addPerRoute(section: TreeMap, above: Settings, cluster: string | undefined): Settings {
      const configs = mapOf(section, 'typed_per_filter_config');
      if (configs === undefined) return above;
      const changed = new Map(above);
      for (const filter of filters) {
        for (const map of findAllOfType(configs.entries.get(filter.name)?.value, types.perRoute)) {
          const domain = addDomain(map, reporter) || filter.domain;
          const own = mapsOf(map, 'rate_limits');
          for (const rateLimit of own) {
            addRateLimit(rateLimit, [domain], [filter], cluster, reporter);
          }
          const ofHost = textOf(map, 'vh_rate_limits');
          changed.set(filter, { domain, hasOwn: own.length > 0, ofHost });
        }
      }
      return changed;
    }

    const unset = filters.map(
      (filter) => [filter, { domain: filter.domain, hasOwn: false, ofHost: '' }] as const,
    );
    const ofAll = addPerRoute(map, new Map(unset), undefined);
    for (const host of mapsOf(map, 'virtual_hosts')) {
      const ofHost = addPerRoute(host, ofAll, undefined);
      const all: Settings[] = [];
      for (const route of mapsOf(host, 'routes')) {
        const action = mapOf(route, 'route');
        // Redirects and direct responses are never limited.
        if (action === undefined) continue;
        const cluster = textOf(action, 'cluster') || undefined;
        const ofRoute = addPerRoute(route, ofHost, cluster);
        const list = mapsOf(action, 'rate_limits');
        addPosition(list, [ofRoute], ({ hasOwn }) => !hasOwn, cluster);
        const weighted = mapOf(action, 'weighted_clusters');
        const targets = weighted ? mapsOf(weighted, 'clusters') : [];
        const ofTargets = targets.map((target) =>
          addPerRoute(target, ofRoute, textOf(target, 'name') || undefined),
        );
        const includes = isTrue(action, 'include_vh_rate_limits');
        for (const each of [ofRoute, ...ofTargets]) {
          const takers = [...each].filter(([, set]) =>
            includesHost(set, list.length > 0, includes),
          );
          all.push(new Map(takers));
        }
      }
      const matcher = mapOf(host, 'matcher');
      if (matcher !== undefined) leaveOut(reporter, matcher.offset, 'routes in a matcher');
      const settings = mapsOf(host, 'routes').length === 0 ? [ofHost] : all;
      addPosition(mapsOf(host, 'rate_limits'), settings, () => true, undefined);
    }
  }

  for (const { root, reporter } of files) {
    const managers = findAllOfType(root, types.manager);
    const networkFilters = findAllOfType(root, types.networkFilter);
    for (const manager of managers) addManager(manager, reporter);
    for (const filter of networkFilters) addNetworkFilter(filter, reporter);
    const hasRoutes = findAllOfType(root, types.routes).length > 0;
    if (managers.length + networkFilters.length === 0 && !hasRoutes) {
      const what = 'the file has no HTTP connection manager, no rate limit filter and no routes';
      leaveOut(reporter, root.offset, what);
    }
    const dynamic = root.kind === 'map' ? mapOf(root, 'dynamic_resources') : undefined;
    const lds = dynamic && mapOf(dynamic, 'lds_config');
    if (lds !== undefined) leaveOut(reporter, lds.offset, 'listeners that come over LDS');
  }
  for (const routes of named.values()) {
    const isUsed = used.has(routes);
    if (!isUsed) {
      const what = 'no HTTP connection manager in these files uses this route configuration';
      leaveOut(routes.reporter, routes.map.offset, what);
    }
  }
  return { domains, descriptors, unsent, isComplete };
}

/** The settings of a filter at one level. */
interface FilterSettings {
  readonly domain: string;
  /** Whether it has limits that replace those of routes and virtual hosts. */
  readonly hasOwn: boolean;
  /** OVERRIDE (also written as ''), INCLUDE or IGNORE. */
  readonly ofHost: string;
}

type Settings = ReadonlyMap<RateLimitFilter, FilterSettings>;

/** Whether the limits of the virtual host apply to a route. */
function includesHost({ hasOwn, ofHost }: FilterSettings, isLimited: boolean, includes: boolean) {
  if (hasOwn) return false;
  return includes || (ofHost === 'IGNORE' ? false : ofHost === 'INCLUDE' || !isLimited);
}

function stageOf(map: TreeMap): number {
  return Number(textOf(map, 'stage') || 0);
}

function isTypeUrlOf(discovery: TreeMap, type: string): boolean {
  const urls = fieldOf(discovery, 'type_urls');
  return (
    urls?.kind === 'list' &&
    urls.items.some((url) => 'source' in url && url.source.endsWith(`/envoy.${type}`))
  );
}
