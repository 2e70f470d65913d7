/** `replay`: sends recorded order flow to the running stack through its REST interface. */
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { createGunzip } from 'node:zlib'
import { openAdmin } from '../../stack/admin.ts'
import { report } from '../../stack/replay/report.ts'
import { replay as replayOrders } from '../../stack/replay/run.ts'
import type { Context } from '../context.ts'
import { stackFileOf } from './stack-file-of.ts'

interface ReplayValues {
  readonly orders: string
  readonly market: string
  readonly speed: number
  readonly limit: number | undefined
  readonly minutes: number | undefined
  readonly accounts: number
  readonly feed: boolean
  readonly verify: boolean
}

function linesOf(path: string): AsyncIterable<string> {
  const file = createReadStream(path)
  const input = path.endsWith('.gz') ? file.pipe(createGunzip()) : file
  return createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })
}

const print = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

export async function replay(
  context: Context,
  { limit, minutes, ...values }: ReplayValues,
): Promise<undefined> {
  const all = Number.POSITIVE_INFINITY
  const options = { ...values, limit: limit ?? all, minutes: minutes ?? all }
  const admin = await openAdmin(stackFileOf(context))
  try {
    const result = await replayOrders(admin, linesOf(values.orders), options, print)
    print(await report(admin, result))
  } finally {
    await admin.close()
  }
  return undefined
}
