// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/model/model_stopped.h"

#include <string>

#include "Vstops.h"
#include "gtest/gtest.h"
#include "hw/sim/model/clocked_model.h"

namespace heddle::sim::model {
namespace {

TEST(ModelStoppedTest, FailedAssertionIsAnExceptionThatNamesItsPlace) {
  ClockedModel<Vstops> model;
  model.Tick();
  model->break_i = 1;
  try {
    model.Tick();
    FAIL() << "the assertion passed";
  } catch (const ModelStopped& stopped) {
    EXPECT_NE(std::string(stopped.what()).find("stops.sv"), std::string::npos)
        << stopped.what();
  }
}

TEST(ModelStoppedTest, FinishIsAnExceptionToo) {
  ClockedModel<Vstops> model;
  model->finish_i = 1;
  EXPECT_THROW(model.Tick(), ModelStopped);
}

TEST(ModelStoppedTest, OtherModelsGoOn) {
  ClockedModel<Vstops> other;
  {
    ClockedModel<Vstops> model;
    model->break_i = 1;
    EXPECT_THROW(model.Tick(), ModelStopped);
  }
  for (int i = 0; i < 10; ++i) {
    other.Tick();
  }
}

}  // namespace
}  // namespace heddle::sim::model
