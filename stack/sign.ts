/** `npm run sign`: prints the body of `POST /v0/orders` for an order signed by an account of the running stack. */
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { Client } from '../client/client.ts'
import { StackError } from './options.ts'
import { readStackFile } from './stack-file.ts'

const USAGE = `npm run --silent sign -- --market <symbol> --side <LONG|SHORT> --quantity <n> [options]
  --price <n>     limit price; without it, a market order
  --leverage <n>  default 1
  --reduce-only   the order may only reduce a position
  --account <n>   index in stack.json (default 0)
  --stack <file>  default .clearbatch/stack.json`

async function main(): Promise<void> {
  const text = { type: 'string' } as const
  const { values } = parseArgs({
    options: {
      ...{
        market: text,
        side: text,
        quantity: text,
        price: text,
        leverage: text,
        account: text,
        stack: text,
      },
      'reduce-only': { type: 'boolean', default: false },
    },
  })
  const { side, quantity, price } = values
  if ((side !== 'LONG' && side !== 'SHORT') || quantity === undefined) throw new StackError(USAGE)
  const { base_url, markets, accounts } = readStackFile(resolve(values.stack ?? '.clearbatch/stack.json'))
  const account = accounts[Number(values.account ?? 0)]
  const market = markets.find(({ symbol }) => symbol === values.market)
  if (account === undefined)
    throw new StackError(`--account must be from 0 to ${accounts.length - 1}, not ${values.account}`)
  if (market === undefined)
    throw new StackError(
      `--market must be one of ${markets.map(({ symbol }) => symbol).join(', ')}; received ${values.market ?? 'none'}`,
    )

  const { orders } = new Client({ baseUrl: base_url, privateKey: account.private_key })
  const { body } = await orders.sign({
    marketId: market.market_id,
    side,
    quantity,
    leverage: Number(values.leverage ?? 1),
    reduceOnly: values['reduce-only'],
    ...(price === undefined ? {} : { price }),
  })
  process.stdout.write(`${JSON.stringify(body)}\n`)
}

try {
  await main()
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`)
  process.exitCode = 1
}
