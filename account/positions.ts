/** Commands that change margin and leverage of the account's positions. */
import { decimal, toggle } from '../service/command-line.ts'
import { command } from './command.ts'
import type { Session } from './connect.ts'

async function marketId({ client }: Session, symbol: string): Promise<number> {
  const markets = await client.marketData.markets()
  const market = markets.find((each) => each.symbol === symbol)
  if (market === undefined)
    throw new Error(
      `the market must be one of ${markets.map((each) => each.symbol).join(', ')}; received ${symbol}`,
    )
  return market.market_id
}

function wholeLeverage(text: string): number {
  if (!/^[1-9]\d{0,3}$/.test(text))
    throw new Error(`the leverage must be a whole number from 1; received ${text}`)
  return Number(text)
}

const UP_TO = toggle('removes as much as is possible, at most the amount')

export const POSITION_COMMANDS = {
  'adjust-leverage': command(
    'change the leverage of a position; cancels its open orders first',
    '<symbol> <leverage>',
    { 'max-in': decimal('the most that may be debited from the free balance (default: what is available)') },
    async (session, [symbol = '', leverage = ''], flags) => {
      const most = flags['max-in']
      return session.client.adjustments.adjustLeverage(
        await marketId(session, symbol),
        wholeLeverage(leverage),
        most === undefined ? {} : { maxMarginIn: most },
      )
    },
  ),
  'add-margin': command(
    'add margin to a position',
    '<symbol> <amount>',
    {},
    async (session, [symbol = '', amount = '']) =>
      session.client.adjustments.addMargin(await marketId(session, symbol), amount),
  ),
  'remove-margin': command(
    'remove margin from a position',
    '<symbol> <amount>',
    { 'up-to': UP_TO },
    async (session, [symbol = '', amount = ''], flags) =>
      session.client.adjustments.removeMargin(await marketId(session, symbol), amount, {
        upTo: flags['up-to'],
      }),
  ),
  attempts: command('list the adjustments with their status', '', {}, async ({ client }) =>
    (await client.adjustments.attempts()).map(({ user_id: _, ...attempt }) => attempt),
  ),
} as const
