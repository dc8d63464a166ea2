// Finds what a set of Envoy configuration files asks a rate limit service: every descriptor that a filter, route or
// virtual host can send, with its domain. Which `rate_limits` Envoy sends (its API reference: RateLimit and
// RateLimitPerRoute of extensions.filters.http.ratelimit.v3; VirtualHost, RouteAction, RateLimit of config.route.v3):
// - A filter sends limits of its own `stage`, those of a route or of its virtual host. If a route has limits, it sends
//   those of the virtual host only with `include_vh_rate_limits` or with `vh_rate_limits`, below.
// - `typed_per_filter_config`, by the name of a filter, has a RateLimitPerRoute for all routes, a virtual host, a route
//   or a weighted cluster: the most specific one applies. It may change the domain. Its own `rate_limits` replace those
//   of route and virtual host. Its `vh_rate_limits` is OVERRIDE (the default, as above), INCLUDE (those of the virtual
//   host are sent, too) or IGNORE (never); `include_vh_rate_limits` comes before it.
// - Redirects and direct responses send nothing.
// Limits of a filter itself replace the others, too; here both count as sent, as for settings of some clusters only.
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
export interface AskedDescriptor extends AskedDomain {
  readonly entries: readonly ActionEntry[];
  /** Whether it is a bucket of a quota filter, whose entries have no order. */
  readonly isBucket: boolean;
  /** Whether it may carry its own limit, and so needs no rule. */
  readonly hasOwnLimit: boolean;
  /** Hits of each request; NaN where they cannot be read. */
  readonly cost: number;
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

interface RateLimitFilter {
  readonly name: string;
  readonly domain: string;
  readonly stage: number;
  readonly late: LateMetadata;
  /** Whether its configuration has limits, which replace those of routes and virtual hosts. */
  readonly hasOwn: boolean;
}

interface RouteConfiguration {
  readonly map: TreeMap;
  readonly reporter: Reporter;
}

/** What one filter does at one level: for all routes, a virtual host, a route or a weighted cluster. */
interface FilterSettings {
  readonly filter: RateLimitFilter;
  readonly domain: string;
  /** Whether it has limits that replace those of routes and virtual hosts. */
  readonly hasOwn: boolean;
  /** `vh_rate_limits`: OVERRIDE (also written as ''), INCLUDE or IGNORE. */
  readonly hostOption: string;
}

type Settings = readonly FilterSettings[];

/** The filters of a connection manager, and the file whose part is read for them. */
interface Scope {
  readonly asked: Questions;
  readonly filters: readonly RateLimitFilter[];
  readonly localStages: ReadonlySet<number>;
  readonly reporter: Reporter;
  /** The cluster that requests go to, if known. */
  readonly cluster: string | undefined;
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

const neverSent = 'these actions are never sent';
const noSender = 'every route has limits of its own, ignores these, or only answers';

/** Problems go to the files' reporters. */
export function readEnvoyQuestions(files: readonly EnvoyFile[]): EnvoyQuestions {
  const asked = new Questions();
  const named = new Map<string, RouteConfiguration>();
  const used = new Set<RouteConfiguration>();
  for (const { root, reporter } of files) {
    for (const map of findAllOfType(root, types.routes)) {
      named.set(textOf(map, 'name'), { map, reporter });
    }
  }
  for (const { root, reporter } of files) {
    const managers = findAllOfType(root, types.manager);
    const networkFilters = findAllOfType(root, types.networkFilter);
    for (const manager of managers) {
      const scope = readFilters(asked, manager, reporter);
      const routes = findRoutes(scope, manager, named);
      if (routes === undefined) continue;
      used.add(routes);
      addRoutes({ ...scope, reporter: routes.reporter }, routes.map);
    }
    for (const filter of networkFilters) addNetworkFilter(asked, filter, reporter);
    const hasRoutes = findAllOfType(root, types.routes).length > 0;
    if (managers.length + networkFilters.length === 0 && !hasRoutes) {
      const what = 'the file has no HTTP connection manager, no rate limit filter and no routes';
      asked.leaveOut(reporter, root.offset, what);
    }
    const dynamic = root.kind === 'map' ? mapOf(root, 'dynamic_resources') : undefined;
    const lds = dynamic && mapOf(dynamic, 'lds_config');
    if (lds !== undefined) asked.leaveOut(reporter, lds.offset, 'listeners that come over LDS');
  }
  for (const routes of named.values()) {
    if (used.has(routes)) continue;
    const what = 'no HTTP connection manager in these files uses this route configuration';
    asked.leaveOut(routes.reporter, routes.map.offset, what);
  }
  return asked;
}

/** The HTTP filters of a connection manager. Adds what they ask by themselves. */
function readFilters(asked: Questions, manager: TreeMap, reporter: Reporter): Scope {
  const filters: RateLimitFilter[] = [];
  const localStages = new Set<number>();
  const scope = { asked, filters, localStages, reporter, cluster: undefined };
  const items = mapsOf(manager, 'http_filters');
  for (const [position, item] of items.entries()) {
    const config = fieldOf(item, 'typed_config');
    for (const map of findAllOfType(config, types.filter)) {
      const domain = asked.addDomain(map, reporter);
      const late = findLateMetadata(items, position);
      const own = mapsOf(map, 'rate_limits');
      const hasOwn = own.length > 0;
      const filter = { name: textOf(item, 'name'), domain, stage: stageOf(map), late, hasOwn };
      filters.push(filter);
      for (const each of own) addRateLimit(scope, each, [domain], [filter]);
    }
    const quotaFilters = findAllOfType(config, types.quotaFilter);
    for (const filter of quotaFilters) addQuotaFilter(asked, filter, reporter);
    for (const map of findAllOfType(config, types.localFilter)) localStages.add(stageOf(map));
    const discovery = mapOf(item, 'config_discovery');
    if (discovery && isTypeUrlOf(discovery, types.filter)) {
      asked.leaveOut(reporter, discovery.offset, 'this filter is not in these files');
    }
  }
  return scope;
}

/** The routes of a connection manager: its own, or those of the name that it asks for over RDS. */
function findRoutes(
  { asked, filters, reporter }: Scope,
  manager: TreeMap,
  named: ReadonlyMap<string, RouteConfiguration>,
): RouteConfiguration | undefined {
  const own = mapOf(manager, 'route_config');
  if (own !== undefined) return { map: own, reporter };
  const rds = mapOf(manager, 'rds');
  const found = rds && named.get(textOf(rds, 'route_config_name'));
  if (found !== undefined || filters.length === 0) return found;
  if (rds !== undefined) {
    const name = toExcerpt(textOf(rds, 'route_config_name'));
    const what = `the routes '${name}' come over RDS, and are not in these files`;
    asked.leaveOut(reporter, rds.offset, what);
  } else if (mapOf(manager, 'scoped_routes') !== undefined) {
    asked.leaveOut(reporter, manager.offset, 'scoped routes are not followed');
  } else asked.leaveOut(reporter, manager.offset, 'this connection manager has no routes');
  return undefined;
}

function addRoutes(scope: Scope, routes: TreeMap): void {
  const { asked, filters, reporter } = scope;
  if (mapOf(routes, 'vhds') !== undefined && filters.length > 0) {
    asked.leaveOut(reporter, routes.offset, 'virtual hosts that come over VHDS');
  }
  const unset = { hasOwn: false, hostOption: '' };
  const ofFilters = filters.map((filter) => ({ ...unset, filter, domain: filter.domain }));
  const ofAll = applyOverrides(scope, routes, ofFilters);
  for (const host of mapsOf(routes, 'virtual_hosts')) addHost(scope, host, ofAll);
}

function addHost(scope: Scope, host: TreeMap, ofAll: Settings): void {
  const ofHost = applyOverrides(scope, host, ofAll);
  const routes = mapsOf(host, 'routes');
  const senders = routes.flatMap((route) => addRoute(scope, route, ofHost));
  const matcher = mapOf(host, 'matcher');
  if (matcher) scope.asked.leaveOut(scope.reporter, matcher.offset, 'routes in a matcher');
  // Without routes here, those that there will be are unknown: each filter may send.
  addLimits(scope, mapsOf(host, 'rate_limits'), routes.length === 0 ? ofHost : senders);
}

/** Returns the filters that send the limits of the virtual host for requests of this route: the filter's own replace
 * them (`RateLimitPerRoute.rate_limits`), else `RateLimitPerRoute.vh_rate_limits` of the route or of its cluster
 * decides: IGNORE, INCLUDE, or OVERRIDE, which a route with limits of its own does. */
function addRoute(above: Scope, route: TreeMap, ofHost: Settings): Settings {
  const action = mapOf(route, 'route');
  if (action === undefined) return [];
  const scope = { ...above, cluster: textOf(action, 'cluster') || undefined };
  const ofRoute = applyOverrides(scope, route, ofHost);
  const limits = mapsOf(action, 'rate_limits');
  const senders = ofRoute.filter(({ hasOwn }) => !hasOwn);
  addLimits(scope, limits, senders);
  const weighted = mapOf(action, 'weighted_clusters');
  const ofTargets = (weighted ? mapsOf(weighted, 'clusters') : []).flatMap((target) => {
    const cluster = textOf(target, 'name') || undefined;
    return applyOverrides({ ...above, cluster }, target, ofRoute);
  });
  const includes = isTrue(action, 'include_vh_rate_limits');
  return [...ofRoute, ...ofTargets].filter(({ hasOwn, hostOption }) => {
    if (hasOwn || (hostOption === 'IGNORE' && !includes)) return false;
    return includes || hostOption === 'INCLUDE' || limits.length === 0;
  });
}

/** The settings in a section that may have `typed_per_filter_config`. Adds the limits in them. */
function applyOverrides(scope: Scope, section: TreeMap, above: Settings): Settings {
  const configs = mapOf(section, 'typed_per_filter_config');
  if (configs === undefined) return above;
  return above.map((inherited) => {
    const { filter } = inherited;
    let settings = inherited;
    for (const map of findAllOfType(configs.entries.get(filter.name)?.value, types.perRoute)) {
      const domain = scope.asked.addDomain(map, scope.reporter) || filter.domain;
      const own = mapsOf(map, 'rate_limits');
      for (const each of own) addRateLimit(scope, each, [domain], [filter]);
      const hostOption = textOf(map, 'vh_rate_limits');
      settings = { filter, domain, hasOwn: own.length > 0, hostOption };
    }
    return settings;
  });
}

/** Adds the limits of a route or virtual host, for each domain that the senders of their stage have. */
function addLimits(scope: Scope, limits: readonly TreeMap[], senders: Settings): void {
  const { asked, filters, localStages, reporter } = scope;
  const domainsOf = new Map(filters.map((filter) => [filter, new Set<string>()]));
  for (const { filter, domain } of senders) {
    if (!filter.hasOwn) domainsOf.get(filter)?.add(domain);
  }
  for (const rateLimit of limits) {
    const { offset } = rateLimit;
    const stage = stageOf(rateLimit);
    const ofStage = filters.filter((filter) => filter.stage === stage);
    const domains = new Set(ofStage.flatMap((filter) => [...(domainsOf.get(filter) ?? [])]));
    if (ofStage.length === 0 && !localStages.has(stage)) {
      const message = `${neverSent}: no rate limit filter has their stage`;
      asked.unsent.push({ reporter, offset, message });
    } else if (domains.size === 0 && ofStage.length > 0) {
      const isOfFilter = ofStage.every(({ hasOwn }) => hasOwn);
      const owner = isOfFilter ? 'the filter has limits of its own' : noSender;
      const message = `${neverSent}: ${owner}`;
      asked.unsent.push({ reporter, offset, message });
    }
    addRateLimit(scope, rateLimit, domains, ofStage);
  }
}

/** Adds the descriptor of one item of `rate_limits`, once for each domain. */
function addRateLimit(
  scope: Scope,
  rateLimit: TreeMap,
  domains: Iterable<string>,
  senders: readonly RateLimitFilter[],
): void {
  const { asked, cluster, reporter } = scope;
  const entries: ActionEntry[] = [];
  for (const action of mapsOf(rateLimit, 'actions')) {
    if (!isTrue(rateLimit, 'apply_on_stream_done')) reportLate(scope, action, senders);
    const entry = toEntry(action, cluster);
    if (entry === undefined) {
      asked.leaveOut(reporter, action.offset, 'this action and its descriptors are unknown');
      return;
    }
    entries.push(entry);
  }
  if (entries.length === 0) return;
  const { offset } = rateLimit;
  const hasOwnLimit = mapOf(rateLimit, 'limit') !== undefined;
  const addend = mapOf(rateLimit, 'hits_addend');
  // Without a number, the cost comes from the request or is 1.
  const cost = Number((addend && textOf(addend, 'number')) || 1);
  for (const domain of domains) {
    asked.add({ domain, entries, isBucket: false, hasOwnLimit, cost, reporter, offset });
  }
}

/** Metadata that a filter writes after the rate limit filter exists only at the end of the stream. */
function reportLate(
  { asked, reporter }: Scope,
  action: TreeMap,
  senders: readonly RateLimitFilter[],
): void {
  const namespace = namespaceRead(action);
  if (namespace === undefined) return;
  const writer = senders.map(({ late }) => late.get(namespace)).find((name) => name);
  if (writer === undefined) return;
  const message = `the metadata '${toExcerpt(namespace)}' is empty here: the filter '${toExcerpt(writer)}' writes it after the rate limit filter`;
  const hint = 'put that filter before the rate limit filter';
  asked.unsent.push({ reporter, offset: action.offset, message, hint });
}

function addNetworkFilter(asked: Questions, filter: TreeMap, reporter: Reporter): void {
  const domain = asked.addDomain(filter, reporter);
  for (const descriptor of mapsOf(filter, 'descriptors')) {
    const entries = mapsOf(descriptor, 'entries').map((entry) => {
      const text = textOf(entry, 'value');
      const value = text.includes('%') ? undefined : text;
      return { key: textOf(entry, 'key'), value, isOptional: false, offset: entry.offset };
    });
    const { offset } = descriptor;
    asked.add({ domain, entries, isBucket: false, hasOwnLimit: false, cost: 1, reporter, offset });
  }
}

function addQuotaFilter(asked: Questions, filter: TreeMap, reporter: Reporter): void {
  const domain = asked.addDomain(filter, reporter);
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
    asked.add({ domain, entries, isBucket: true, hasOwnLimit: false, cost: 1, reporter, offset });
  }
}

/** What has been found so far. */
class Questions implements EnvoyQuestions {
  readonly domains: AskedDomain[] = [];
  readonly descriptors: AskedDescriptor[] = [];
  readonly unsent: UnsentActions[] = [];
  isComplete = true;
  #isFull = false;

  /** Reports a part of the configuration that is not read. */
  leaveOut(reporter: Reporter, offset: number, what: string): void {
    this.isComplete = false;
    const hint = 'rules that no action can reach are then not reported';
    reporter.advise('envoy-not-checked', offset, '', `not checked: ${what}`, hint);
  }

  add(descriptor: AskedDescriptor): void {
    if (this.descriptors.length < maxDescriptors) this.descriptors.push(descriptor);
    else if (!this.#isFull) {
      this.#isFull = true;
      const what = `this and what follows: more than ${maxDescriptors} descriptors`;
      this.leaveOut(descriptor.reporter, descriptor.offset, what);
    }
  }

  /** `map`: where the filter, or its override, names its domain. */
  addDomain(map: TreeMap, reporter: Reporter): string {
    const domain = textOf(map, 'domain');
    const offset = fieldOf(map, 'domain')?.offset ?? map.offset;
    if (domain !== '') this.domains.push({ domain, reporter, offset });
    return domain;
  }
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
