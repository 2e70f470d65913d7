/**
 * Short messages about events. A toast replaces an earlier toast with the same id, so that one action has one toast.
 */
import { signal } from '@preact/signals'

export interface Toast {
  readonly id: string
  readonly kind: 'info' | 'good' | 'bad' | 'pending'
  readonly title: string
  readonly text?: string
}

export const toasts = signal<readonly Toast[]>([])

const LIFE_MS = { info: 6_000, good: 6_000, bad: 15_000, pending: 60_000 } as const
const timers = new Map<string, ReturnType<typeof setTimeout>>()
const MOST = 5

export function dismiss(id: string): void {
  clearTimeout(timers.get(id))
  timers.delete(id)
  toasts.value = toasts.value.filter((each) => each.id !== id)
}

export function toast(next: Toast): void {
  const known = toasts.value.some(({ id }) => id === next.id)
  toasts.value = known
    ? toasts.value.map((each) => (each.id === next.id ? next : each))
    : [...toasts.value, next].slice(-MOST)
  clearTimeout(timers.get(next.id))
  timers.set(
    next.id,
    setTimeout(() => dismiss(next.id), LIFE_MS[next.kind]),
  )
}

interface Attempt<Result> {
  readonly id: string
  /** While it runs, such as `Withdrawing`. */
  readonly doing: string
  readonly done: string | ((result: Result) => Pick<Toast, 'title' | 'text'> & Partial<Toast>)
  readonly failed: string
}

/** Runs one action with one toast. Returns its result, or null after a failure. */
export async function attempt<Result>(
  { id, doing, done, failed }: Attempt<Result>,
  run: () => Promise<Result>,
): Promise<Result | null> {
  toast({ id, kind: 'pending', title: doing })
  try {
    const result = await run()
    toast({ id, kind: 'good', ...(typeof done === 'string' ? { title: done } : done(result)) })
    return result
  } catch (error) {
    toast({ id, kind: 'bad', title: failed, text: (error as Error).message })
    return null
  }
}
