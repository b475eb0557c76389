import { Injectable } from '@nestjs/common';
import { LoadBalancerConfig } from '../load-balancer.config';
import type { EngineSource } from './engine-source';
import { EndpointSliceSource } from './kubernetes/endpoint-slice-source';

/** The sources that are configured; none by default. */
@Injectable()
export class EngineSources {
  readonly all: readonly EngineSource[];

  constructor(config: LoadBalancerConfig) {
    const all: EngineSource[] = [];
    const listed = config.engineUrls.map((url) => ({ url }));
    if (listed.length > 0) all.push({ engines: () => Promise.resolve(listed) });
    if (config.k8sLabelSelector !== '') all.push(EndpointSliceSource.ofConfig(config));
    this.all = all;
  }
}
