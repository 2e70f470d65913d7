/** Commands that move collateral: the faucet, deposits and withdrawals. */
import { command } from './command.ts'
import type { Session } from './connect.ts'

/** The state of the withdrawals, once the exchange shows the transaction. */
async function withdrawalsAfter({ client }: Session, tx_hash: string) {
  for (let tries = 0; ; tries++) {
    const { withdrawals, pending, payable_at } = await client.account.withdrawalPage({ limit: 10 })
    const isShown = withdrawals.some((each) => each.tx_hash === tx_hash || each.paid_tx_hash === tx_hash)
    if (isShown || tries === 50) return { tx_hash, pending, payable_at }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

export const BANK_COMMANDS = {
  balance: command('show the balance', '', {}, ({ client }) => client.account.balance()),
  faucet: command('request test collateral and gas', '', {}, ({ client }) => client.bank.faucet()),
  deposit: command('deposit USDM from the wallet', '<amount>', {}, async ({ client }, [amount = '']) => {
    const { tx_hash, balance } = await client.bank.deposit(amount)
    return { tx_hash, ...balance }
  }),
  'withdraw request': command(
    'request a withdrawal: the amount leaves the free balance and can be paid 16 s later',
    '<amount>',
    {},
    async (session, [amount = '']) =>
      withdrawalsAfter(session, await session.client.bank.requestWithdrawal(amount)),
  ),
  'withdraw complete': command('have all that is payable paid to the wallet', '', {}, async (session) => {
    const { pending, payable_at } = await session.client.account.withdrawalPage({ limit: 1 })
    if (payable_at === null) throw new Error('nothing is pending: request a withdrawal first')
    if (Date.parse(payable_at) > Date.now())
      throw new Error(`${pending} USDM are payable from ${payable_at} on; it is ${new Date().toISOString()}`)
    return withdrawalsAfter(session, await session.client.bank.withdraw())
  }),
  'withdraw list': command('list the withdrawals with their status', '', {}, async ({ client }) =>
    (await client.account.withdrawalPage()).withdrawals.map(
      ({ status, amount_e18_raw: _, amount, requested_at, payable_at, paid_at, tx_hash }) => ({
        ...{ status, amount, requested_at, payable_at, paid_at, tx_hash },
      }),
    ),
  ),
} as const
