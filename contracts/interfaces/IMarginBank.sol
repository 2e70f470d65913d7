// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {MarketMode} from "../types/Market.sol";

/**
 * @title Custody of the collateral token, and the ledger of balances
 * @notice One free balance per account and one pool per market. A market moves value between free balances and its own pool, and
 * never more out of the pool than its balance. Invariant:
 * `sum of free + sum of pending + sum of pools + sum of fees = tokens of the bank` (donations aside). A deposit may raise the
 * bank's tokens to at most 2^94, so no sequence of deposits and settlements fills the 96 bits of an account.
 *
 * A withdrawal has two steps. The requested amount leaves *free* immediately, but backs batches with `asOf` <= request time +
 * CANCEL_GRACE; a debit reduces free first, then pending. The amount can be paid when no such batch can settle any more: after
 * request time + CANCEL_GRACE + ACTION_LIFETIME. From then on no market can debit it, whatever `asOf` the market passes. A second
 * request restarts the clock for the whole amount.
 *
 * A listed market's code can debit free balances: listing is the most dangerous operation. A market is announced, can be listed
 * after `listingDelay` while no pause is active, must have exactly the announced code, and must be able to settle: its mode is
 * open, no stricter mode is scheduled, it has not expired, and it has an operator.
 *
 * A pause blocks deposits, payouts, settlement and listing. It ends after three days at the latest, and the next pause can start
 * thirty days after its start at the earliest. During a pause the bank holds 1 wei, which its latch (`PauseLatch`) holds at all
 * other times. Invariant: pause active => balance of the bank > 0. Payments and settlements therefore read no slot for the
 * pause, and a pause costs the same however many markets are listed.
 */
interface IMarginBank {
    struct Account {
        uint96 free;
        /// Requested for withdrawal and not yet paid.
        uint96 pending;
        /// Unix seconds of the latest request.
        uint64 requestedAt;
    }

    struct Market {
        uint112 pool;
        /// Fees charged and not yet collected.
        uint112 fees;
        /// Unix seconds of the listing, from which the market may settle except during a pause. 0 if it is not listed.
        uint32 openFrom;
    }

    /// @notice An announced market.
    struct Announcement {
        bytes32 codeHash;
        /// Unix seconds: `listMarket` is possible from `listableFrom` (inclusive) to `lapsesAt` (exclusive).
        uint64 listableFrom;
        uint64 lapsesAt;
    }

    /// @notice The last pause in unix seconds; both 0 before the first pause.
    struct Pause {
        uint64 startedAt;
        uint64 endsAt;
    }

    /// @notice `amount` was received from `payer` and credited to the free balance of `account`.
    event Deposited(address indexed account, address indexed payer, uint256 amount);
    /// @notice `amount` left free; `pending` is the whole pending amount, requested at `requestedAt` (unix seconds).
    event WithdrawalRequested(address indexed account, uint256 amount, uint256 pending, uint64 requestedAt);
    /// @notice The whole pending `amount` was paid to the account.
    event Withdrawn(address indexed account, uint256 amount);
    /// @notice The market can be listed with this code from `listableFrom` (inclusive) to `lapsesAt` (exclusive), in unix
    /// seconds. Replaces an earlier announcement of the market.
    event MarketAnnounced(address indexed market, bytes32 codeHash, uint64 listableFrom, uint64 lapsesAt);
    /// @notice The announcement was withdrawn.
    event AnnouncementWithdrawn(address indexed market);
    /// @notice The market may settle from this block on, permanently. Its announcement is consumed.
    event MarketListed(address indexed market, bytes32 codeHash);
    /// @notice The market's uncollected fees were credited to the treasury's free balance.
    event FeesCollected(address indexed market, address indexed treasury, uint256 amount);
    /// @notice Collected fees go to `treasury` from now on.
    event TreasuryChanged(address indexed previous, address indexed treasury);
    /// @notice A pause started with this block; no market can settle until `endsAt` (unix seconds).
    event Paused(uint64 endsAt);
    /// @notice The pause ended with this block.
    event Unpaused();

    error AmountZero();
    error AccountZero();
    /// @notice A market's pool or fees would not fit 112 bits: only a malicious market can cause it.
    error AmountTooLarge(uint256 amount);
    /// @notice The deposit for `account` would raise the bank's tokens above `most`.
    error BankFull(address account, uint256 tokens, uint256 most);
    /// @notice The free balance of `account` would not fit 96 bits: only a malicious market can cause it.
    error CreditTooLarge(address account, uint256 balance);
    error FreeBalanceInsufficient(address account, uint256 available, uint256 asked);
    error NothingPending(address account);
    error WithdrawalEarly(address account, uint256 availableAfter);
    error MarketNotListed(address market);
    error MarketAlreadyListed(address market);
    /// @notice The address has no code, or is an account that delegates to code (EIP-7702) and could change the delegation.
    error MarketWithoutCode(address market);
    error MarketNotAnnounced(address market);
    error ListingEarly(address market, uint256 listableFrom);
    error AnnouncementLapsed(address market, uint256 lapsedAt);
    error MarketCodeChanged(address market, bytes32 announced, bytes32 found);
    /// @notice The market's mode, or the strictest that is scheduled, is not open, or it has no approved operator.
    error MarketNotReady(address market, MarketMode mode, uint256 operators);
    error CollateralWithoutCode(address collateral);
    /// @notice The transfer succeeded, but the bank's token balance did not increase.
    error NothingArrived(uint256 asked);
    /// @notice The bank must be deployed with at least 1 wei for its latch.
    error LatchWithoutWei();
    /// @notice The bank accepts ether from its latch only.
    error SenderNotLatch(address sender);
    error BankPaused(uint256 endsAt);
    error BankNotPaused();
    error PauseTooSoon(uint256 earliest);
    error PoolInsufficient(address market, uint256 pool, uint256 asked);

    // ------------------------------------------------------------------ deposits

    /// @notice Transfers `amount` from the caller and credits the received amount to the caller.
    function deposit(uint256 amount) external;

    /// @notice Transfers `amount` from the caller and credits the received amount to `account`.
    function depositFor(address account, uint256 amount) external;

    /// @notice `deposit` with the token's permit. A permit that was already used is accepted if the allowance suffices.
    function depositWithPermit(uint256 amount, uint256 deadline, uint8 v, bytes32 r, bytes32 s) external;

    // ------------------------------------------------------------------ withdrawals

    /// @notice Moves `amount` of the caller's free balance to pending and restarts the clock of the pending amount.
    function requestWithdrawal(uint256 amount) external;

    /// @notice Pays the caller's pending amount, as far as settlements have not debited it.
    function withdraw() external;

    // ------------------------------------------------------------------ markets

    /// @notice Applies one part to the ledger: adds the deltas to free balances, and `pool -= sum of deltas + fees`. Listed
    /// markets only.
    /// @param asOf Of the action, in milliseconds. Pending withdrawals back it if `asOf` <= request time + CANCEL_GRACE.
    /// @param fees Charged by this part.
    /// @param deltas One word per account: address (20 bytes), change of its free balance (int96).
    function settleDeltas(uint256 asOf, uint256 fees, bytes32[] calldata deltas) external;

    /// @notice Moves the fees of a market to the treasury's free balance. Any caller.
    function collectFees(address market) external;

    // ------------------------------------------------------------------ management

    /// @notice Announces `market` with its current code hash. A second announcement restarts the delay. Restricted.
    function announceMarket(address market) external;

    /// @notice Withdraws the announcement of `market`. Restricted.
    function withdrawAnnouncement(address market) external;

    /// @notice Lists an announced market permanently. Requires the announced code, a time within the listing window, a market
    /// that can settle (`IIsolatedTrader.readiness`), and no pause. Restricted.
    function listMarket(address market) external;

    /// @notice Pauses deposits, payouts, settlement and listing for three days. Withdrawals can be requested. Restricted.
    function pause() external;

    /// @notice Ends a pause early. The earliest start of the next pause does not change. Restricted.
    function unpause() external;

    /// @notice Sends the bank's ether to the latch: the wei of a pause that has expired, or ether that was forced upon the bank.
    /// Until then payments read the pause slot. Any caller; reverts during a pause.
    function restoreLatch() external;

    /// @notice Sets the account that receives collected fees. Restricted.
    function setTreasury(address newTreasury) external;

    // ------------------------------------------------------------------ views

    /// @notice The collateral token.
    function token() external view returns (address);
    /// @notice The account that receives collected fees.
    function treasury() external view returns (address);
    /// @notice Free and pending balance of an account in wei.
    function account(address owner) external view returns (Account memory);
    /// @notice Pool, uncollected fees and listing of a market; all zero if it is not listed.
    function market(address trader) external view returns (Market memory);
    /// @notice Every listed market, in order of listing.
    function markets() external view returns (address[] memory);
    /// @notice The announcement of a market; all zero if there is none, or if the market has been listed.
    function announcement(address trader) external view returns (Announcement memory);
    /// @notice Start and end of the last pause, which may be active.
    function lastPause() external view returns (Pause memory);
    /// @notice Whether a pause is active.
    function isPaused() external view returns (bool);

    /// @notice The `PauseLatch` of this bank.
    function pauseLatch() external view returns (address);

    /// @notice Seconds between announcement and listing.
    function listingDelay() external view returns (uint256);
}
