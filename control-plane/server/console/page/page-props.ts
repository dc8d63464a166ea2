// The properties of every page.
import type { StatusJson } from '../../admin/status-report.ts';
import type { Resource } from './resource.ts';

export interface PageProps {
  readonly params: URLSearchParams;
  readonly status: Resource<StatusJson>;
}
