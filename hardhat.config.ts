import { globSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import toolbox from '@nomicfoundation/hardhat-toolbox-mocha-ethers'
import { configVariable, defineConfig } from 'hardhat/config'
import { definePlugin } from 'hardhat/plugins'
import { TASKS } from './tasks/index.ts'

/** Generated types name the contracts in the order of these paths, which is the file system's: make it one and the same. */
const sortedTypes = definePlugin({
  id: 'sorted-types',
  hookHandlers: {
    solidity: async () => ({
      default: async () => ({
        processArtifactsAfterSuccessfulBuild: async (_context, artifactPaths) => {
          ;(artifactPaths as string[]).sort()
        },
      }),
    }),
  },
})

const COMPILER = {
  version: '0.8.36',
  // An npm package, so that a build downloads nothing.
  path: fileURLToPath(import.meta.resolve('solc/soljson.js')),
}

/**
 * What is tested is what is deployed, to the byte: one compilation of everything, whoever asks for it. The optimizer comes first:
 * "production" begins with settings of its own for it, and a build is known again by its input as text.
 */
const BUILD = {
  compilers: [
    {
      ...COMPILER,
      // More runs make IsolatedTrader larger than the chain takes, and settlement hardly cheaper.
      settings: { optimizer: { enabled: true, runs: 400 }, viaIR: true, evmVersion: 'prague' },
    },
  ],
  // Tests in Solidity take the contracts from the build; they themselves are compiled often and plainly.
  overrides: Object.fromEntries(
    globSync('test/contracts/**/*.sol').map((path) => [
      path,
      { ...COMPILER, settings: { optimizer: { enabled: true, runs: 1 }, evmVersion: 'prague' } },
    ]),
  ),
  isolated: false,
  toolVersionsInBuildInfo: false,
}

/** A step of a run that is refused says why; a revert is a fault. */
const INVARIANT = { failOnRevert: true, shrinkRunLimit: 200 }

/**
 * Both chains keep their base fee at 0.001 gwei and need no tip, so that fees are given and never bumped. A contract's code costs
 * 10,000 gas a byte there: only their own nodes can estimate it, and nothing here caps a transaction's gas.
 */
const FEES = { maxFeePerGas: 1_000_000n, maxPriorityFeePerGas: 0n, disableFeeBumping: true } as const

const LOCAL = {
  type: 'edr-simulated',
  chainId: 6343,
  hardfork: 'prague',
  blockGasLimit: 1_000_000_000,
} as const

/** Blockscout asks for nothing. Etherscan wants a key; Sourcify is not known to serve these chains. */
const VERIFY = {
  blockscout: { enabled: true },
  etherscan:
    process.env.ETHERSCAN_API_KEY === undefined
      ? { enabled: false as const }
      : { enabled: true as const, apiKey: configVariable('ETHERSCAN_API_KEY') },
  sourcify: { enabled: false },
}

export default defineConfig({
  plugins: [sortedTypes, toolbox],
  tasks: TASKS,
  // Deploying and verifying ask for "production", everything else for "default".
  solidity: { profiles: { default: BUILD, production: BUILD } },
  networks: {
    default: LOCAL,
    // What `npx hardhat node` runs, with the base fee of the chains that it stands for.
    node: { ...LOCAL, initialBaseFeePerGas: 1_000_000 },
    // A node on this machine with accounts of its own: anvil, or `npx hardhat node`.
    local: { type: 'http', url: 'http://127.0.0.1:8545', accounts: 'remote' },
    // Secrets come from the keystore (`npx hardhat keystore set …`) or from the environment.
    megaethTestnet: {
      type: 'http',
      chainId: 6343,
      url: configVariable('MEGAETH_TESTNET_RPC_URL'),
      accounts: [configVariable('MEGAETH_TESTNET_KEY')],
      timeout: 60_000,
      ignition: FEES,
    },
    megaeth: {
      type: 'http',
      chainId: 4326,
      url: configVariable('MEGAETH_RPC_URL'),
      accounts: [configVariable('MEGAETH_KEY')],
      timeout: 60_000,
      ignition: FEES,
    },
  },
  chainDescriptors: {
    6343: {
      name: 'MegaETH testnet',
      blockExplorers: {
        blockscout: {
          url: 'https://megaeth-testnet-v2.blockscout.com',
          apiUrl: 'https://megaeth-testnet-v2.blockscout.com/api',
        },
        etherscan: { url: 'https://testnet-mega.etherscan.io' },
      },
    },
    4326: {
      name: 'MegaETH',
      blockExplorers: {
        blockscout: { url: 'https://megaeth.blockscout.com', apiUrl: 'https://megaeth.blockscout.com/api' },
        etherscan: { url: 'https://mega.etherscan.io' },
      },
    },
  },
  // Receipts come within milliseconds, from one sequencer.
  ignition: { requiredConfirmations: 1, blockPollingInterval: 200 },
  verify: VERIFY,
  paths: {
    tests: { mocha: './test/contracts', solidity: './test/contracts' },
  },
  typechain: { outDir: fileURLToPath(new URL('typechain-types', import.meta.url)), tsNocheck: true },
  test: {
    mocha: { timeout: 60_000 },
    solidity: {
      profiles: {
        default: { fuzz: { runs: 200, seed: '0x5eed' }, invariant: { ...INVARIANT, runs: 10, depth: 50 } },
        deep: { fuzz: { runs: 50_000, seed: '0x5eed' }, invariant: { ...INVARIANT, runs: 300, depth: 200 } },
      },
    },
  },
})
