// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ISettlementErrors} from "../interfaces/ISettlementErrors.sol";
import {SaltState} from "../types/Order.sol";
import {OrderFill} from "../types/Settlement.sol";
import {CancelFloor, TraderState, Word} from "../types/TraderState.sol";
import {G, L} from "./Delays.sol";

/**
 * @title What is left of an order
 * @notice On the chain an order is its maker and salt. 128 salts share one word, 2 bits each: unused, partly filled, dead,
 * cancel requested; a maker who counts his salts up therefore pays for a fresh slot once in 128 orders.
 *
 * A partly filled order sits in one of its maker's partial slots, at an index which the operator chooses:
 * `salt << 112 | filled << 64 | batch`. Reusing a slot kills the order it held, in the same part, so that an order can never
 * be believed emptier than it is.
 *
 * A cancel request records its time, and whether the order was partly filled then, in a slot of its own that settlement
 * reads only for a salt in that state.
 */
library SaltLib {
    uint256 internal constant SALT_END = 1 << 53;
    /// @dev The index that means "no partial slot".
    uint256 internal constant NO_SLOT = 1023;
    uint256 private constant PARTLY_BIT = 1 << 255;

    uint256 private constant UNUSED = uint256(SaltState.Unused);
    uint256 private constant PARTLY = uint256(SaltState.PartlyFilled);
    uint256 private constant DEAD = uint256(SaltState.Dead);
    uint256 private constant REQUESTED = uint256(SaltState.CancelRequested);

    // ------------------------------------------------------------------ filling

    /// @notice Takes `order.fill` out of what is left of the order.
    /// @return dead The salt can never fill again.
    function consume(TraderState storage state, OrderFill memory order, uint256 batchId, uint256 asOf)
        internal
        returns (bool dead)
    {
        uint256 key = wordKey(order.maker, order.salt);
        uint256 shift = _shift(order.salt);
        Word storage place = state.saltWords[key];
        uint256 word = place.bits;
        uint256 before = (word >> shift) & 3;
        if (before == DEAD) revert ISettlementErrors.OrderDead(order.maker, order.salt);

        bool partly = before == PARTLY;
        if (before == REQUESTED) partly = _readRequest(state, order, asOf);
        uint256 filled = partly ? _filled(state, order, batchId) : 0;
        uint256 remaining = order.quantity > filled ? order.quantity - filled : 0;
        if (order.fill > remaining) {
            revert ISettlementErrors.Overfill(order.maker, order.salt, remaining, order.fill);
        }

        // An order without a limit that gets no slot dies here: it could fill in no later batch.
        dead = order.fill == remaining || (order.price == 0 && order.slot == NO_SLOT);
        uint256 next = dead ? DEAD : before == REQUESTED ? REQUESTED : PARTLY;
        if (!dead) {
            if (!partly) word = _claimSlot(state, order, key, word);
            if (before == REQUESTED && !partly) state.cancelRequests[requestKey(order.maker, order.salt)] |= PARTLY_BIT;
            _writeSlot(state, order, filled + order.fill, batchId);
        }
        place.bits = (word & ~(3 << shift)) | (next << shift);
    }

    /// @notice Refuses an order that could not fill as of `asOf`, whatever is left of it.
    function requireAlive(TraderState storage state, OrderFill memory order, uint256 asOf) internal view {
        SaltState current = stateOf(state, order.maker, order.salt);
        if (current == SaltState.Dead) revert ISettlementErrors.OrderDead(order.maker, order.salt);
        if (current == SaltState.CancelRequested) _readRequest(state, order, asOf);
        requireAboveFloor(state, order, asOf);
    }

    /// @dev Steps filled so far of an order in state "partly filled".
    function _filled(TraderState storage state, OrderFill memory order, uint256 batchId) private view returns (uint256) {
        if (order.slot == NO_SLOT) revert ISettlementErrors.PartialSlotMissing(order.maker, order.salt);
        (uint256 salt, uint256 filled, uint256 lastBatch) = readSlot(state, order.maker, order.slot);
        if (filled == 0 || salt != order.salt) {
            revert ISettlementErrors.PartialSlotMismatch(order.maker, order.salt, order.slot);
        }
        if (order.price == 0 && lastBatch != batchId) {
            revert ISettlementErrors.MarketOrderStale(order.maker, order.salt, lastBatch, batchId);
        }
        return filled;
    }

    /// @dev Kills the order that the slot holds. Its state may lie in the word at hand, which the caller writes.
    function _claimSlot(TraderState storage state, OrderFill memory order, uint256 key, uint256 word)
        private
        returns (uint256)
    {
        if (order.slot == NO_SLOT) revert ISettlementErrors.PartialSlotMissing(order.maker, order.salt);
        (uint256 held, uint256 filled,) = readSlot(state, order.maker, order.slot);
        if (filled == 0) return word;
        uint256 heldKey = wordKey(order.maker, held);
        uint256 deadBits = DEAD << _shift(held);
        uint256 mask = 3 << _shift(held);
        if (heldKey == key) return (word & ~mask) | deadBits;
        Word storage place = state.saltWords[heldKey];
        if (place.bits & mask != deadBits) place.bits = (place.bits & ~mask) | deadBits;
        return word;
    }

    function _readRequest(TraderState storage state, OrderFill memory order, uint256 asOf)
        private
        view
        returns (bool partly)
    {
        uint256 request = state.cancelRequests[requestKey(order.maker, order.salt)];
        uint256 requestedAt = request & ~PARTLY_BIT;
        if (asOf > requestedAt + G) {
            revert ISettlementErrors.OrderCancelled(order.maker, order.salt, requestedAt, asOf);
        }
        return request & PARTLY_BIT != 0;
    }

    // ------------------------------------------------------------------ cancelling

    /// @notice Requests the cancel of one salt at `requestedAt` (milliseconds). A salt already dead or requested stays so.
    function requestCancel(TraderState storage state, address maker, uint256 salt, uint256 requestedAt) internal {
        Word storage place = state.saltWords[wordKey(maker, salt)];
        uint256 shift = _shift(salt);
        uint256 before = (place.bits >> shift) & 3;
        if (before == DEAD || before == REQUESTED) return;
        state.cancelRequests[requestKey(maker, salt)] = before == PARTLY ? requestedAt | PARTLY_BIT : requestedAt;
        // From 0 or 1 to 3: only adds bits.
        place.bits |= REQUESTED << shift;
    }

    /// @notice Raises the floor below which salts are cancelled. What was requested longer ago than G + L has settled: no batch
    /// can be left that it does not bind.
    /// @return raised False if `floor` is not above the standing one.
    function requestFloor(TraderState storage state, address maker, uint256 floor, uint256 requestedAt)
        internal
        returns (bool raised)
    {
        CancelFloor memory standing = state.cancelFloors[maker];
        if (floor <= standing.requested) return false;
        if (requestedAt > uint256(standing.requestedAt) + G + L) standing.settled = standing.requested;
        // Salts and their floors are below 2^54, times in milliseconds below 2^48.
        standing.requested = uint56(floor);
        standing.requestedAt = uint48(requestedAt);
        state.cancelFloors[maker] = standing;
        return true;
    }

    /// @notice Refuses an order whose salt lies below its maker's floor. Call only where the position says that there is one.
    function requireAboveFloor(TraderState storage state, OrderFill memory order, uint256 asOf) internal view {
        CancelFloor memory floor = state.cancelFloors[order.maker];
        uint256 binding = asOf > uint256(floor.requestedAt) + G ? floor.requested : floor.settled;
        if (order.salt < binding) {
            revert ISettlementErrors.OrderCancelled(order.maker, order.salt, floor.requestedAt, asOf);
        }
    }

    // ------------------------------------------------------------------ keys and slots

    function stateOf(TraderState storage state, address maker, uint256 salt) internal view returns (SaltState) {
        return SaltState((state.saltWords[wordKey(maker, salt)].bits >> _shift(salt)) & 3);
    }

    function readSlot(TraderState storage state, address maker, uint256 index)
        internal
        view
        returns (uint256 salt, uint256 filled, uint256 batchId)
    {
        uint256 slot = state.partialSlots[slotKey(maker, index)];
        return (slot >> 112, (slot >> 64) & type(uint48).max, slot & type(uint64).max);
    }

    function _writeSlot(TraderState storage state, OrderFill memory order, uint256 filled, uint256 batchId) private {
        state.partialSlots[slotKey(order.maker, order.slot)] = (order.salt << 112) | (filled << 64) | batchId;
    }

    function wordKey(address maker, uint256 salt) internal pure returns (uint256) {
        return (uint256(uint160(maker)) << 96) | (salt >> 7);
    }

    function slotKey(address maker, uint256 index) internal pure returns (uint256) {
        return (uint256(uint160(maker)) << 96) | index;
    }

    function requestKey(address maker, uint256 salt) internal pure returns (uint256) {
        return (uint256(uint160(maker)) << 96) | salt;
    }

    function _shift(uint256 salt) private pure returns (uint256) {
        return (salt & 127) << 1;
    }
}
