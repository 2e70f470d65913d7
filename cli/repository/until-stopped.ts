/** Waits for the first signal to the command. After a second one this process ends at once; its children then stop by themselves. */
import type { Context } from '../context.ts'

export const untilStopped = ({ stopping }: Context): Promise<void> =>
  new Promise((resolve) => {
    if (stopping.aborted) resolve()
    else stopping.addEventListener('abort', () => resolve(), { once: true })
  })
