/** `npm run sign`: prints the body of `POST /v0/orders` for an order signed by an account of the running stack. */
import { resolve } from 'node:path'
import { Client } from '../client/client.ts'
import {
  argumentsOf,
  decimal,
  oneOf,
  required,
  text,
  toggle,
  wholeNumber,
  withDefault,
} from '../service/command-line.ts'
import { StackError } from './options.ts'
import { readStackFile } from './stack-file.ts'

const COMMAND_LINE = {
  command: 'npm run --silent sign --',
  flags: {
    market: required(text('<symbol>', 'market of the order')),
    side: required(oneOf(['LONG', 'SHORT'], 'side of the order')),
    quantity: required(decimal('quantity of the order')),
    price: decimal('limit price; without it, a market order'),
    leverage: withDefault(wholeNumber('leverage of what the order opens', { least: 1 }), 1),
    'reduce-only': toggle('the order may only reduce a position'),
    account: withDefault(wholeNumber('index in stack.json'), 0),
    stack: withDefault(text('<file>', 'stack.json of the running stack'), '.clearbatch/stack.json'),
  },
} as const

async function main(): Promise<void> {
  const { side, quantity, price, leverage, ...values } = argumentsOf(COMMAND_LINE)
  const { base_url, markets, accounts } = readStackFile(resolve(values.stack))
  const account = accounts[values.account]
  const market = markets.find(({ symbol }) => symbol === values.market)
  if (account === undefined)
    throw new StackError(`--account must be from 0 to ${accounts.length - 1}, not ${values.account}`)
  if (market === undefined)
    throw new StackError(
      `--market must be one of ${markets.map(({ symbol }) => symbol).join(', ')}; received ${values.market}`,
    )

  const { orders } = new Client({ baseUrl: base_url, privateKey: account.private_key })
  const { body } = await orders.sign({
    marketId: market.market_id,
    side,
    quantity,
    leverage,
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
