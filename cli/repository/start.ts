/** `start`: runs a complete exchange on this machine until Ctrl-C. */

import { relative } from 'node:path'
import type { CalendarName } from '../../domain/market/trading-calendar.ts'
import { optionsOf, type StackOptions, type StartValues } from '../../stack/options.ts'
import { startStack } from '../../stack/stack.ts'
import type { StackFile } from '../../stack/stack-file.ts'
import type { Context } from '../context.ts'
import { untilStopped } from './until-stopped.ts'

const print = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

export async function start(context: Context, values: StartValues): Promise<undefined> {
  const options = optionsOf(values)
  print(`Starting Clearbatch in ${options.dataDir} ...`)
  const began = Date.now()
  const stack = await startStack(options, (line) => print(`[${new Date().toISOString()}] ${line}`))
  print(summary(stack.file, options))
  print(
    `Ready after ${((Date.now() - began) / 1000).toFixed(1)} s. Ctrl-C stops all processes. The next start resumes from the saved ` +
      'state; --fresh resets it.',
  )
  await untilStopped(context)
  print('Stopping ...')
  await stack.stop()
  print('Stopped.')
  return undefined
}

const SESSIONS: Readonly<Record<CalendarName, string>> = {
  ALWAYS_OPEN:
    'the stock market is always open (--always-open, the default); --calendar: New York trading hours',
  NYSE: 'the stock market follows New York trading hours (--calendar); GET /v0/markets shows session and next change',
}

function summary(
  { base_url, ws_url, issuer_url, rpc_url, contracts, markets, accounts }: StackFile,
  { dataDir, calendar }: StackOptions,
): string {
  const nearby = relative(process.cwd(), dataDir)
  const home = nearby.startsWith('..') ? dataDir : nearby
  return [
    '',
    `  Page        ${base_url}`,
    `  REST        ${base_url}/v0        docs ${base_url}/docs`,
    `  Live feed   ${ws_url}`,
    `  Sign-in     ${issuer_url}`,
    `  Chain       ${rpc_url}`,
    `  USDM        ${contracts.usdm}`,
    `  Bank        ${contracts.margin_bank}`,
    ...markets.map(({ symbol, type, trader_address }, index) => {
      return `  ${index === 0 ? 'Markets ' : '        '}    ${symbol.padEnd(16)} ${type.padEnd(14)} ${trader_address}`
    }),
    `  Sessions    ${SESSIONS[calendar ?? 'ALWAYS_OPEN']}`,
    `  Accounts    ${accounts.length} funded accounts, keys in ${home}/stack.json; the first:`,
    `              ${accounts[0]?.address}  user ${accounts[0]?.user_id}  Key ${accounts[0]?.api_key}`,
    '',
  ].join('\n')
}
