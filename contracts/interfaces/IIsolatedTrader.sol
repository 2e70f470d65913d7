// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IAdjustments} from "./IAdjustments.sol";
import {IFunding} from "./IFunding.sol";
import {IMarketChanges} from "./IMarketChanges.sol";
import {IMarketWindDown} from "./IMarketWindDown.sol";
import {IMarketRisk} from "./IMarketRisk.sol";
import {ISettlementErrors} from "./ISettlementErrors.sol";
import {MarketGrid, OperatorStatus, Parameters} from "../types/Market.sol";
import {Order, SaltState} from "../types/Order.sol";
import {Position} from "../types/Position.sol";
import {Clock, Floors, PendingChange, Reference} from "../types/TraderState.sol";

/**
 * @title One market: positions, signed orders, batches
 * @notice An operator settles what the auction matched. He supplies quantities and two fee rates, nothing else that moves
 * value: the price is held in a band around an oracle he does not control, and every amount follows from it.
 *
 * Every order record is bound by its maker's signature. The operator can leave an order out; he cannot fill it beyond its
 * limit, quantity, life, leverage or reduce-only mark, nor twice, nor at two prices in one batch.
 *
 * Every event of a market is declared once, here or in an interface that this one inherits. Together they tell all that the
 * market knows: test/support/replay.ts rebuilds it from logs alone.
 *
 * `asOf` (milliseconds) is the only clock: expiry, session keys, report age and late cancels are judged by it. It never
 * decreases, lies at most 2 s ahead of block time, and dies 10 s (ACTION_LIFETIME) behind it.
 */
interface IIsolatedTrader is ISettlementErrors, IMarketChanges, IFunding, IAdjustments, IMarketRisk, IMarketWindDown {
    /// @notice One settled part. `data` is documented in contracts/README.md; domain/settlement-codec.ts decodes it.
    event BatchSettled(uint256 indexed actionId, uint256 indexed batchId, bytes data);
    /// @notice What never changes. `ParametersChanged` with action 0 tells the rest.
    event MarketCreated(MarketGrid grid, address bank, address accountManager, address oracle);
    /// @notice `status` from now on; `None` takes the office or the proposal away.
    event OperatorChanged(address indexed operator, OperatorStatus status);
    /// @notice Binding for batches with an `asOf` later than `requestedAt` (milliseconds) + CANCEL_GRACE.
    event SaltsCancelled(address indexed maker, uint64[] salts, uint256 requestedAt);
    /// @notice As `SaltsCancelled`, for every salt below `floor`. The floor before it binds every batch if it was requested more
    /// than CANCEL_GRACE + ACTION_LIFETIME earlier.
    event SaltsCancelledBelow(address indexed maker, uint256 floor, uint256 requestedAt);

    error NotOperator(address caller);
    error OperatorNotProposed(address caller);
    error GridInvalid();
    error AddressZero();
    /// @notice The extension runs only by `delegatecall` from a market.
    error ExtensionCalledDirectly();
    error SaltTooLarge(uint256 salt);
    error AmountOffGrid(uint256 amount, uint256 increment);
    error SignatureLengthWrong(uint256 expected, uint256 given);
    /// @notice The last byte of an order's signature must be 01: signed as a personal message.
    error SignatureSuffixWrong(uint8 suffix);

    // ------------------------------------------------------------------ settlement

    /**
     * @notice Settles one part of a batch. Operator only.
     * @dev The caller must supply, and is refused otherwise: the next action number; parts of one batch in sequence with
     * one price, `asOf` and report; both sides equal; taker quantity equal to the matched volume; the records of one
     * account next to each other, reducing before opening. Splitting an account's run is safe, only stricter.
     * @param part Packed part, see contracts/README.md.
     */
    function settleBatch(bytes calldata part) external;

    // ------------------------------------------------------------------ cancels

    /// @notice Kills the caller's orders with these salts. Salts already dead or requested are passed over.
    function cancelSalts(uint64[] calldata salts) external;

    /// @notice Cancels the caller's orders with a salt below `floor`. A second request within CANCEL_GRACE + ACTION_LIFETIME
    /// restarts the clock of the first. A floor below the current one changes nothing.
    function cancelSaltsBelow(uint256 floor) external;

    // ------------------------------------------------------------------ management

    /// @notice Lets `operator` take the role up; one who has it keeps it. Restricted.
    function proposeOperator(address operator) external;

    /// @notice Takes up the operator's role: proves that the proposed address can act.
    function acceptOperator() external;

    /// @notice Takes the role, or the proposal, back at once. Restricted.
    function revokeOperator(address operator) external;

    // ------------------------------------------------------------------ views

    /// @notice The EIP-712 digest of an order: the `order_hash` everywhere else. Its maker signs it as a personal message.
    function hashOrder(Order calldata order) external view returns (bytes32);

    /// @notice Reverts with the error of settlement if the order could not be settled as of `asOf`; checks everything that
    /// does not need a price, a position or a quantity.
    /// @param signature r, s, v and the suffix 01: 66 bytes.
    /// @return hash The digest.
    /// @return signer The maker or his session key.
    function validateOrder(Order calldata order, bytes calldata signature, uint256 asOf)
        external
        view
        returns (bytes32 hash, address signer);

    /// @notice As of the market's last action: what funding has come to since is not in `margin`.
    function position(address account) external view returns (Position memory);

    /// @notice Equity and notional of an account at `price` (x 1e18), in wei x 1e18; as of the market's last action.
    function health(address account, uint256 price) external view returns (int256 equityX, uint256 notionalX);

    function saltState(address maker, uint256 salt) external view returns (SaltState);

    /// @notice What a partial slot of a maker holds: a partly filled order's salt, filled steps and latest batch.
    function partialSlot(address maker, uint256 index)
        external
        view
        returns (uint256 salt, uint256 filled, uint256 batchId);

    /// @notice The salts and margin nonces below which everything of the account is void.
    function floors(address account) external view returns (Floors memory);
    function operatorStatus(address operator) external view returns (OperatorStatus);
    function clock() external view returns (Clock memory);
    function lastReference() external view returns (Reference memory);
    function parameters() external view returns (Parameters memory);

    /// @notice What waits to take over.
    function pendingChange() external view returns (PendingChange memory);

    function grid() external view returns (MarketGrid memory);
    function bank() external view returns (address);
    /// @notice The contract whose code the market delegates to for infrequent functions and for views.
    function extension() external view returns (address);
    function accountManager() external view returns (address);
    function oracle() external view returns (address);
    function domainSeparator() external view returns (bytes32);
}
