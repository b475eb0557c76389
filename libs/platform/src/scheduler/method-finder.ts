import { Injectable } from '@nestjs/common';
import { type DiscoverableDecorator, DiscoveryService, MetadataScanner } from '@nestjs/core';

/** A method of a provider that has a decorator. */
interface DecoratedMethod<Options, Run> {
  /** Name in the form `Class.method`. */
  name: string;
  /** Argument of the decorator. */
  options: Options;
  run: Run;
}

/** Finds the methods of all providers of the app that have a decorator of `DiscoveryService.createDecorator`. */
@Injectable()
export class MethodFinder {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
  ) {}

  find<Options, Run>(decorator: DiscoverableDecorator<Options>): DecoratedMethod<Options, Run>[] {
    return this.discovery.getProviders().flatMap((provider) => {
      const { instance } = provider as { instance?: object };
      if (typeof instance !== 'object' || instance === null) return [];
      return this.scanner.getAllMethodNames(Object.getPrototypeOf(instance) as object).flatMap((method) => {
        const options = this.discovery.getMetadataByDecorator(decorator, provider, method);
        if (options === undefined) return [];
        const run = (instance as Record<string, () => unknown>)[method]!.bind(instance) as Run;
        return { name: `${instance.constructor.name}.${method}`, options, run };
      });
    });
  }
}
