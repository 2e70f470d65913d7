/**
 * `npx hardhat` tasks. What they do is loaded when they run: a build must not need the types that it generates.
 */
import { task } from 'hardhat/config'
import { ArgumentType } from 'hardhat/types/arguments'

const DEPLOYMENT = {
  name: 'deploymentId',
  description: 'name of the deployment, as given to `ignition deploy`',
  defaultValue: 'local',
} as const
const PARAMETERS = {
  name: 'parameters',
  description: 'parameter file of the network',
  defaultValue: 'ignition/parameters/local.json',
} as const
const MARKET = {
  name: 'marketId',
  description: 'id of the market',
  type: ArgumentType.INT,
  defaultValue: 1,
} as const
const ORDER = {
  name: 'order',
  description: 'order as in the body of POST /v0/orders, with `maker` (JSON text or a file)',
  defaultValue: '',
} as const

const deploying = () => import('./deploying.ts')
const showing = () => import('./showing.ts')

export const TASKS = [
  task('deploy-market', 'Deploys, wires and announces one market of an exchange')
    .addOption({ name: 'market', description: 'description of the market (JSON file)', defaultValue: '' })
    .addOption(DEPLOYMENT)
    .addOption(PARAMETERS)
    .setInlineAction(async (given, hre) => (await deploying()).deployMarket(given, hre))
    .build(),
  task('list-market', 'Lists an announced market at the bank, once its delay is over')
    .addOption(MARKET)
    .addOption(DEPLOYMENT)
    .setInlineAction(async (given, hre) => (await deploying()).listMarket(given, hre))
    .build(),
  task('accept-operator', 'Takes up the office of operator of a market')
    .addOption(MARKET)
    .addOption(DEPLOYMENT)
    .setInlineAction(async (given, hre) => (await deploying()).acceptOperator(given, hre))
    .build(),
  task('hand-over', "Hands the deployer's roles to their holders, step by step")
    .addOption(DEPLOYMENT)
    .addOption(PARAMETERS)
    .setInlineAction(async (given, hre) => (await deploying()).handOver(given, hre))
    .build(),
  task('accept-role', 'Takes up a role that was offered')
    .addOption({
      name: 'role',
      description: 'admin, listing, parameters, guardian or treasury',
      defaultValue: '',
    })
    .addOption(DEPLOYMENT)
    .setInlineAction(async (given, hre) => (await deploying()).acceptRole(given, hre))
    .build(),
  task('check-deployment', 'Reads a deployment back and compares it with what was meant')
    .addOption(DEPLOYMENT)
    .addOption(PARAMETERS)
    .addOption({ name: 'markets', description: 'descriptions of its markets, by commas', defaultValue: '' })
    .addFlag({ name: 'handedOver', description: 'the deployer has left' })
    .setInlineAction(async (given, hre) => (await deploying()).check(given, hre))
    .build(),
  task('show-market', 'Shows a market: grid, parameters, queue of actions, references, risk, end')
    .addOption({ name: 'trader', description: 'address of its contract', defaultValue: '' })
    .setInlineAction(async (given, hre) => (await showing()).showMarket(given, hre))
    .build(),
  task('show-account', 'Shows what an account has at the bank, and its position in a market')
    .addOption({ name: 'trader', description: "address of the market's contract", defaultValue: '' })
    .addOption({ name: 'account', description: 'address of the account', defaultValue: '' })
    .setInlineAction(async (given, hre) => (await showing()).showAccount(given, hre))
    .build(),
  task('hash-order', 'Hashes an order: digest, typed data, and what the market itself answers')
    .addOption({ name: 'trader', description: "address of the market's contract", defaultValue: '' })
    .addOption(ORDER)
    .setInlineAction(async (given, hre) => (await showing()).hashOrder(given, hre))
    .build(),
  task('validate-order', 'Asks a market whether it could settle an order, and who signed it')
    .addOption({ name: 'trader', description: "address of the market's contract", defaultValue: '' })
    .addOption(ORDER)
    .addOption({ name: 'signature', description: '66 bytes, ending in 01', defaultValue: '' })
    .setInlineAction(async (given, hre) => (await showing()).validateOrder(given, hre))
    .build(),
  task('decode-settlement', 'Decodes what a settlement did from the receipt of its transaction')
    .addOption({ name: 'tx', description: 'hash of the transaction', defaultValue: '' })
    .setInlineAction(async (given, hre) => (await showing()).decodeSettlement(given, hre))
    .build(),
]
