import { fork, type ChildProcess } from 'node:child_process';

type Answer = { id: number; result?: unknown; error?: string };

/** A program of the benchmark in a process of its own, which ends with this process. */
export class Child<Question, Result> {
  private readonly waiting = new Map<number, { resolve(result: Result): void; reject(error: Error): void }>();
  private count = 0;

  private constructor(private readonly child: ChildProcess) {
    child.on('message', (message) => {
      const { id, result, error } = message as Answer;
      const asked = this.waiting.get(id);
      this.waiting.delete(id);
      if (error === undefined) asked?.resolve(result as Result);
      else asked?.reject(new Error(error));
    });
    child.on('exit', (code, signal) => {
      for (const { reject } of this.waiting.values()) reject(new Error(`${child.spawnfile} ended (${code ?? signal})`));
    });
  }

  /** @param file compiled program that calls {@link answerParent} */
  static start<Question, Result>(file: string): Child<Question, Result> {
    return new Child(fork(file, { execArgv: [] }));
  }

  get processId(): number {
    return this.child.pid!;
  }

  ask(question: Question): Promise<Result> {
    return new Promise((resolve, reject) => {
      const id = this.count++;
      this.waiting.set(id, { resolve, reject });
      this.child.send({ id, question });
    });
  }

  stop(): void {
    this.child.removeAllListeners('exit');
    this.child.kill();
  }
}

/** Child side of {@link Child}: answers each question of the parent, and ends the process when the parent is gone. */
export function answerParent<Question, Result>(answer: (question: Question) => Promise<Result>): void {
  process.on('disconnect', () => process.exit(0));
  process.on('message', (message) => {
    const { id, question } = message as { id: number; question: Question };
    answer(question).then(
      (result) => process.send!({ id, result }),
      (error: unknown) => process.send!({ id, error: String((error as Error).stack ?? error) }),
    );
  });
}
