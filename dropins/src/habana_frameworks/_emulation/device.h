// What torch requires of a device: a guard, hooks and a random generator.
#pragma once

#include <ATen/detail/HPUHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "memory.h"
#include "pinning.h"

namespace emulation {

// One card with one stream: work is done when a call returns, or in the order of CUDA's default stream.
struct Guard final : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::HPU> {
  c10::Device exchangeDevice(c10::Device) const override {
    return kCard;
  }
  c10::Device getDevice() const override {
    return kCard;
  }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.index() <= 0, "There is one emulated Gaudi card, hpu:0, but ", device, " was requested.");
  }
  c10::Stream getStream(c10::Device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, kCard);
  }
  c10::Stream getDefaultStream(c10::Device) const override {
    return c10::Stream(c10::Stream::DEFAULT, kCard);
  }
  c10::Stream getNewStream(c10::Device, int = 0) const override {
    return c10::Stream(c10::Stream::DEFAULT, kCard);
  }
  c10::Stream exchangeStream(c10::Stream) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, kCard);
  }
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override {
    return true;
  }
  void synchronizeEvent(void*) const override {}
  void synchronizeDevice(const c10::DeviceIndex) const override {
    wait_underneath();
  }
};

// Draws the same numbers as a generator of the computing device with the same seed.
struct Generator final : c10::GeneratorImpl {
  explicit Generator(at::Generator source)
      : c10::GeneratorImpl(kCard, c10::DispatchKeySet(c10::DispatchKey::HPU)), beneath(std::move(source)) {}

  void set_current_seed(uint64_t seed) override {
    beneath.set_current_seed(seed);
  }
  void set_offset(uint64_t offset) override {
    beneath.set_offset(offset);
  }
  uint64_t get_offset() const override {
    return beneath.get_offset();
  }
  uint64_t current_seed() const override {
    return beneath.current_seed();
  }
  uint64_t seed() override {
    return beneath.seed();
  }
  void set_state(const c10::TensorImpl& state) override {
    beneath.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return beneath.unsafeGetGeneratorImpl()->get_state();
  }
  Generator* clone_impl() const override {
    return new Generator(beneath.clone());
  }

  at::Generator beneath;
};

struct Hooks final : at::HPUHooksInterface {
  explicit Hooks(at::HPUHooksArgs = {}) {}

  void init() const override {}
  bool isBuilt() const override {
    return true;
  }
  bool isAvailable() const override {
    return true;
  }
  bool hasHPU() const override {
    return true;
  }
  bool hasPrimaryContext(c10::DeviceIndex) const override {
    return true;
  }
  c10::DeviceIndex deviceCount() const override {
    return 1;
  }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  c10::DeviceIndex getCurrentDevice() const override {
    return 0;
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override {
    return 0;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override {
    return 0;
  }
  c10::Device getDeviceFromPtr(void*) const override {
    return kCard;
  }
  c10::Allocator* getPinnedMemoryAllocator() const override {
    return pinned_allocator();
  }
  bool isPinnedPtr(const void* data) const override {
    return is_pinned(data);
  }
  // Uses the computing device's default generator, so that a script draws the same numbers with and without the card.
  const at::Generator& getDefaultGenerator(c10::DeviceIndex = -1) const override {
    static const at::Generator only = at::make_generator<Generator>(default_generator_underneath());
    return only;
  }
  at::Generator getNewGenerator(c10::DeviceIndex = -1) const override {
    return at::make_generator<Generator>(new_generator_underneath());
  }
};

} // namespace emulation
