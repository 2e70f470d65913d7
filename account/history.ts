/** Commands that list what has happened to the account. */
import { oneOf, text, toggle, wholeNumber } from '../service/command-line.ts'
import { command } from './command.ts'

const TYPES = [
  ...(['deposit', 'withdrawal', 'adjust_leverage', 'funding_payment', 'add_margin'] as const),
  ...(['remove_margin', 'liquidation', 'market_delisting_payout'] as const),
] as const

export const HISTORY_COMMANDS = {
  transactions: command(
    "list what changed the account's collateral, newest first",
    '',
    {
      csv: toggle('print all of them as CSV'),
      type: oneOf(TYPES, 'only of this type'),
      from: text('<time>', 'only at this time or later, such as 2026-11-22T13:00:00Z'),
      to: text('<time>', 'only before this time'),
      limit: wholeNumber('most transactions', { least: 1, most: 1000 }),
    },
    async ({ client }, _positionals, { csv, type, from, to, limit }) => {
      const range = {
        ...(type === undefined ? {} : { type }),
        ...(from === undefined ? {} : { from }),
        ...(to === undefined ? {} : { to }),
        ...(limit === undefined ? {} : { limit }),
      }
      if (csv) return client.account.transactionsCsv(range)
      return (await client.account.transactions(range)).map(
        ({
          created_at,
          transaction_type,
          amount,
          available_margin_delta,
          funding_payment_delta,
          market_symbol,
          id,
        }) => ({
          ...{ created_at, transaction_type, amount, available_margin_delta, funding_payment_delta },
          ...{ market_symbol, id },
        }),
      )
    },
  ),
} as const
