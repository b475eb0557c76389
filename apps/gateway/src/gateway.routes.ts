import type { Provider, Type } from '@nestjs/common';
import { AboutRoutes } from './about/about-routes';
import { ControlRoutes } from './control/control-routes';
import { ChatRoutes } from './dialects/chat/chat-routes';
import { MessagesRoutes } from './dialects/messages/messages-routes';
import { ProgramsRoutes } from './dialects/programs/programs-routes';
import { ResponsesRoutes } from './dialects/responses/responses-routes';
import { SglangControl } from './dialects/sglang/sglang-control';
import { SglangGenerate } from './dialects/sglang/sglang-generate';
import { TokenizerRoutes } from './dialects/tokenizer/tokenizer-routes';
import { SkyRlRoutes } from './dialects/vllm/skyrl-routes';
import { VllmRoutes } from './dialects/vllm/vllm-routes';
import { FleetRoutes } from './fleet/fleet-routes';
import { RllmWorkers } from './fleet/rllm-workers';
import { ROUTE_SOURCES, type RouteSource } from './http/route';
import { RoundsRoutes } from './rounds/rounds-routes';
import { RllmRoutes } from './trajectories/rllm-routes';
import { TrajectoryRoutes } from './trajectories/trajectory-routes';

const SOURCES: Type<RouteSource>[] = [
  SglangGenerate,
  SglangControl,
  VllmRoutes,
  SkyRlRoutes,
  ProgramsRoutes,
  ChatRoutes,
  MessagesRoutes,
  ResponsesRoutes,
  TokenizerRoutes,
  FleetRoutes,
  RllmWorkers,
  ControlRoutes,
  RoundsRoutes,
  TrajectoryRoutes,
  RllmRoutes,
  AboutRoutes,
];

export const routeProviders: Provider[] = [
  ...SOURCES,
  { provide: ROUTE_SOURCES, inject: SOURCES, useFactory: (...sources: RouteSource[]) => sources },
];
