/** Runs the load generator (`load.ts`) in a child process. */
import { fork } from 'node:child_process'
import type { LoadMessage, LoadTask, Measured } from './load.ts'

export interface Generator {
  /** `onStart` is called when all orders are signed and the first request is about to be sent. */
  run(task: LoadTask, onStart?: () => void): Promise<Measured>
  stop(): void
}

export function startGenerator(): Generator {
  const child = fork(new URL('./load.ts', import.meta.url).pathname, { serialization: 'advanced' })
  return {
    run: (task, onStart = () => {}) =>
      new Promise((resolve, reject) => {
        const onMessage = (message: LoadMessage): void => {
          if (message === 'started') onStart()
          else {
            child.off('message', onMessage).off('exit', fail)
            resolve(message)
          }
        }
        const fail = (): void =>
          reject(new Error('the load generator exited before it reported its measurement'))
        child.on('message', onMessage).once('exit', fail)
        child.send(task)
      }),
    stop: () => child.disconnect(),
  }
}
