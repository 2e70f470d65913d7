/** `feed`: replays recorded prices into a running stack, through the recorded source of its price publisher. */
import { resolve } from 'node:path'
import { openAdmin } from '../../stack/admin.ts'
import { feed as feedPrices } from '../../stack/feed/run.ts'
import { summaryOf } from '../../stack/feed/summary.ts'
import type { Context } from '../context.ts'
import { stackFileOf } from './stack-file-of.ts'

interface FeedValues {
  readonly market: string
  readonly prices: string
  readonly speed: number
  readonly minutes: number | undefined
  readonly absolute: boolean
}

const print = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

export async function feed(context: Context, values: FeedValues): Promise<undefined> {
  const { market, prices, speed, minutes, absolute } = values
  const admin = await openAdmin(stackFileOf(context))
  try {
    const limit = minutes ?? Number.POSITIVE_INFINITY
    const options = { market, path: resolve(prices), speed, minutes: limit, isAbsolute: absolute }
    // The stack's own source comes back however the feed ends.
    print(summaryOf(await feedPrices(admin, options, context.stopping, print)))
  } finally {
    await admin.close()
  }
  return undefined
}
